// SPDX-License-Identifier: Apache-2.0

package mustgather

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	infrastructure = configv1.GroupVersion.WithKind("Infrastructure")
	router         = operatorv1.GroupVersion.WithKind("IngressController")
	machine        = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "Machine"}
	deployment     = appsv1.SchemeGroupVersion.WithKind("Deployment")
	node           = corev1.SchemeGroupVersion.WithKind("Node")
	otherNode      = schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Node"}
	pod            = corev1.SchemeGroupVersion.WithKind("Pod")
)

// tree has objects in all places that must-gather and inspect use.
var tree = map[string]string{
	"cluster-scoped-resources/config.openshift.io/infrastructures.yaml": `---
{apiVersion: config.openshift.io/v1, kind: InfrastructureList, items: [
  {apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}], metadata: {resourceVersion: "1"}}`,
	"cluster-scoped-resources/core/nodes/b.yaml":        `{apiVersion: v1, kind: Node, metadata: {name: b}}`,
	"cluster-scoped-resources/core/nodes/a.yaml":        `{apiVersion: v1, kind: Node, metadata: {name: a, labels: {role: master}}}`,
	"cluster-scoped-resources/core/nodes/broken.yaml":   `{apiVersion: v1, kind: Node, metadata: {name: `,
	"cluster-scoped-resources/core/nodes/empty.yaml":    ``,
	"cluster-scoped-resources/core/nodes/other.yaml":    `{apiVersion: v1, kind: Node, metadata: {name: z}}`,
	"cluster-scoped-resources/core/nodes/nameless.yaml": `{apiVersion: v1, kind: Node}`,
	"cluster-scoped-resources/core/nodes/untyped.yaml":  `{kind: Node, metadata: {name: untyped}}`,
	"cluster-scoped-resources/core/nodes/README":        `not an object`,
	"namespaces/ingress/operator.openshift.io/ingresscontrollers/default.yaml": `
{apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: default, namespace: ingress}, spec: {replicas: 2}}`,
	"namespaces/ingress/operator.openshift.io/ingresscontrollers.yaml": `
{apiVersion: v1, kind: List, items: [
  {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: default, namespace: ingress}, spec: {replicas: 99}},
  {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: alpha, namespace: ingress}},
  {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: elsewhere, namespace: openshift-ingress}},
  {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: nowhere}}]}`,
	// Two objects have the same name; the first is of another namespace. Items of typed lists have no kind.
	"namespaces/two/apps/deployments.yaml": `
{apiVersion: apps/v1, kind: DeploymentList, items: [
  {metadata: {name: same, namespace: one}, spec: {replicas: 1}}, {metadata: {name: same, namespace: two}, spec: {replicas: 2}}]}`,
	"namespaces/two/apps/deployments/astray.yaml": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: astray, namespace: one}}`,
	"namespaces/empty/apps/deployments.yaml":      `{apiVersion: apps/v1, kind: DeploymentList, items: []}`,
	"namespaces/broken/apps/deployments.yaml":     `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}`,
	"namespaces/one/core/pods/a.yaml": `
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: one, labels: {app: a}}, spec: {nodeName: master-0}}`,
	"namespaces/two/core/pods.yaml": `
{apiVersion: v1, kind: PodList, items: [
  {metadata: {name: c, namespace: two, labels: {app: c}}, spec: {nodeName: worker-0}},
  {metadata: {name: b, namespace: two}, spec: {nodeName: master-0}}]}`,
	"namespaces/two/core/secrets/s.yaml": `
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: two}, data: {key: c2VjcmV0}, stringData: {a: b}}`,
}

func open(t *testing.T, top string, texts map[string]string) *Client {
	t.Helper()
	files := fstest.MapFS{"timestamp": {}, "event-filter.html": {}}
	for name, text := range texts {
		files[top+name] = &fstest.MapFile{Data: []byte(text)}
	}
	c, err := New(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tops are the folders above a tree: none, that of an image, and packed ones.
var tops = []string{"", "quay-io-example-sha256-0123/", "home/me/must-gather.local.1/image/"}

func TestNew(t *testing.T) {
	for file, want := range map[string]error{
		"x": errNoTree, "src/main.go": errNoTree, "namespaces": errNoTree, "a/b/c/d/e/namespaces/x/y.yaml": errNoTree,
		"namespaces/x/core/pods.yaml": nil, "top/cluster-scoped-resources/core/nodes.yaml": nil,
	} {
		if _, err := New(fstest.MapFS{file: {}}, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", file, err, want)
		}
	}
}

func TestGet(t *testing.T) {
	for _, top := range tops {
		for name, test := range map[string]struct {
			kind            schema.GroupVersionKind
			namespace, name string
			found           bool
			gap             string
		}{
			"cluster-scoped in a list":        {kind: infrastructure, name: "cluster", found: true},
			"cluster-scoped, core group":      {kind: node, name: "a", found: true},
			"namespaced":                      {kind: router, namespace: "ingress", name: "default", found: true},
			"namespaced in a list":            {kind: router, namespace: "ingress", name: "alpha", found: true},
			"typed list without types":        {kind: deployment, namespace: "two", name: "same", found: true},
			"another name":                    {kind: node, name: "c"},
			"not in the list":                 {kind: deployment, namespace: "empty", name: "a"},
			"another namespace":               {kind: deployment, namespace: "no", name: "a", gap: "gather: namespaces/no/apps/deployments/a.yaml"},
			"another group":                   {kind: otherNode, name: "a", gap: "cluster-scoped-resources/x/nodes/a.yaml"},
			"scope is part of the identity":   {kind: node, namespace: "ingress", name: "a", gap: "namespaces/ingress/core/nodes/a.yaml"},
			"corrupt":                         {kind: node, name: "broken", gap: "core/nodes/broken.yaml"},
			"empty":                           {kind: node, name: "empty", gap: "core/nodes/empty.yaml"},
			"holds another object":            {kind: node, name: "other", gap: `holds "z"`},
			"holds an object without a name":  {kind: node, name: "nameless", gap: "core/nodes/nameless.yaml"},
			"holds an object without version": {kind: node, name: "untyped", gap: "core/nodes/untyped.yaml"},
			"list that is none":               {kind: deployment, namespace: "broken", name: "x", gap: "namespaces/broken/apps/deployments.yaml"},
			"no path":                         {kind: node, name: "../nodes/a"},
			"no path to what would be found":  {kind: node, name: "x/../a"},
			"no path to what is corrupt":      {kind: node, name: "../nodes/broken"},
			"in a list, of another namespace": {kind: router, namespace: "ingress", name: "elsewhere"},
			"in a list, of no namespace":      {kind: router, namespace: "ingress", name: "nowhere"},
			"a file of another namespace":     {kind: deployment, namespace: "two", name: "astray", gap: `"astray" in namespace "one"`},
		} {
			t.Run(name+" "+top, func(t *testing.T) {
				c, got := open(t, top, tree), &unstructured.Unstructured{}
				for range 2 { // a gap is noted once
					got.SetGroupVersionKind(test.kind)
					err := c.Get(t.Context(), client.ObjectKey{Namespace: test.namespace, Name: test.name}, got)
					if test.found != (err == nil) || (err != nil && !apierrors.IsNotFound(err)) {
						t.Fatalf("found %t: %v", test.found, err)
					}
				}
				if test.found && (got.GetName() != test.name || got.GroupVersionKind() != test.kind) {
					t.Errorf("got %v", got)
				}
				// A file of its own precedes the list, and numbers stay integers.
				if replicas, is, err := unstructured.NestedInt64(got.Object, "spec", "replicas"); err != nil || is && replicas != 2 {
					t.Errorf("replicas %d, %v", replicas, err)
				}
				gaps := strings.Join(c.Gaps(), "\n")
				if (gaps == "") != (test.gap == "") || len(c.Gaps()) > 1 || !strings.Contains(gaps, test.gap) {
					t.Errorf("gaps %q, want %q", gaps, test.gap)
				}
			})
		}
	}
}

func TestList(t *testing.T) {
	in := func(namespace string) client.ListOption { return client.InNamespace(namespace) }
	for _, top := range tops {
		for name, test := range map[string]struct {
			kind   schema.GroupVersionKind
			option client.ListOption
			want   string
			gaps   []string
		}{
			"one corrupt file hides no others": {node, in(""), "a b", []string{"broken", "empty", "nameless", "other", "untyped.yaml"}},
			"list file":                        {infrastructure, in(""), "cluster", nil},
			"files and list, each name once":   {router, in("ingress"), "alpha default", nil},
			"empty list":                       {deployment, in("empty"), "", nil},
			"nothing":                          {deployment, in("no"), "", []string{"namespaces/no/apps/deployments.yaml"}},
			"corrupt list":                     {deployment, in("broken"), "", []string{"broken/apps/deployments.yaml"}},
			"nothing of another namespace":     {deployment, in("two"), "same", []string{"astray.yaml"}},
			"everywhere":                       {pod, in(""), "a b c", nil},
			"in one namespace":                 {pod, in("two"), "b c", nil},
			"on a node":                        {pod, client.MatchingFields{"spec.nodeName": "master-0"}, "a b", nil},
			"by label":                         {pod, client.MatchingLabels{"app": "c"}, "c", nil},
			"by a label of none":               {pod, client.MatchingLabels{"app": "d"}, "", nil},
			"of a kind of Kubernetes":          {corev1.SchemeGroupVersion.WithKind("PersistentVolume"), in(""), "", []string{"core/persistentvolumes.yaml"}},
			"of a kind not served, perhaps":    {machine, in(""), "", nil},
		} {
			t.Run(name+" "+top, func(t *testing.T) {
				c := open(t, top, tree)
				for _, list := range []client.ObjectList{&unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}} {
					list.GetObjectKind().SetGroupVersionKind(test.kind.GroupVersion().WithKind(test.kind.Kind + "List"))
					if err := c.List(t.Context(), list, test.option); err != nil {
						t.Fatal(err)
					}
					if got := names(t, list); got != test.want {
						t.Errorf("got %q, want %q", got, test.want)
					}
				}
				if !slices.EqualFunc(c.Gaps(), test.gaps, strings.Contains) {
					t.Errorf("gaps %q, want %q", c.Gaps(), test.gaps)
				}
			})
		}
	}
}

func names(t *testing.T, list client.ObjectList) string {
	t.Helper()
	var all []string
	if err := meta.EachListItem(list, func(object runtime.Object) error {
		all = append(all, object.(client.Object).GetName())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// Secrets are read without values.
func TestSecretsStayClosed(t *testing.T) {
	secret := &corev1.Secret{}
	err := open(t, "", tree).Get(t.Context(), client.ObjectKey{Namespace: "two", Name: "s"}, secret)
	if err != nil || secret.Name != "s" || len(secret.Data)+len(secret.StringData) > 0 {
		t.Errorf("%v, %v", err, secret)
	}
}

// All trees of a must-gather are read, and no other must-gather.
func TestSeveralTrees(t *testing.T) {
	c := open(t, "", map[string]string{
		"mg-1/image-1/cluster-scoped-resources/core/nodes/a.yaml": `{apiVersion: v1, kind: Node, metadata: {name: a}}`,
		"mg-1/image-2/cluster-scoped-resources/core/nodes/b.yaml": `{apiVersion: v1, kind: Node, metadata: {name: b}}`,
		"mg-2/image-1/cluster-scoped-resources/core/nodes/c.yaml": `{apiVersion: v1, kind: Node, metadata: {name: c}}`,
	})
	list := &corev1.NodeList{}
	if err := c.List(t.Context(), list); err != nil || names(t, list) != "a b" {
		t.Errorf("%v, %q", err, names(t, list))
	}
}
