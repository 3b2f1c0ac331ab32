package mustgather_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/solonode/sno/patch/mustgather"
)

var (
	infrastructures    = schema.GroupResource{Group: "config.openshift.io", Resource: "infrastructures"}
	nodes              = schema.GroupResource{Resource: "nodes"}
	ingressControllers = schema.GroupResource{Group: "operator.openshift.io", Resource: "ingresscontrollers"}
	deployments        = schema.GroupResource{Group: "apps", Resource: "deployments"}
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// tree has everything in every place that must-gather and inspect know.
func tree(top string) fstest.MapFS {
	files := fstest.MapFS{
		"cluster-scoped-resources/config.openshift.io/infrastructures.yaml": file(`---
apiVersion: config.openshift.io/v1
kind: InfrastructureList
items:
- apiVersion: config.openshift.io/v1
  kind: Infrastructure
  metadata: {name: cluster}
  status: {infrastructureTopology: SingleReplica}
metadata: {resourceVersion: "1"}
`),
		"cluster-scoped-resources/core/nodes/b.yaml":        file("apiVersion: v1\nkind: Node\nmetadata: {name: b}\n"),
		"cluster-scoped-resources/core/nodes/a.yaml":        file("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"),
		"cluster-scoped-resources/core/nodes/broken.yaml":   file("apiVersion: v1\nkind: Node\nmetadata: {name: \n"),
		"cluster-scoped-resources/core/nodes/empty.yaml":    file(""),
		"cluster-scoped-resources/core/nodes/other.yaml":    file("apiVersion: v1\nkind: Node\nmetadata: {name: z}\n"),
		"cluster-scoped-resources/core/nodes/nameless.yaml": file("apiVersion: v1\nkind: Node\n"),
		"cluster-scoped-resources/core/nodes/README":        file("not an object"),
		"namespaces/openshift-ingress-operator/operator.openshift.io/ingresscontrollers/default.yaml": file(
			"apiVersion: operator.openshift.io/v1\nkind: IngressController\nmetadata: {name: default, namespace: openshift-ingress-operator}\nspec: {replicas: 2}\n"),
		"namespaces/openshift-ingress-operator/operator.openshift.io/ingresscontrollers.yaml": file(`
apiVersion: v1
kind: List
items:
- {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: default, namespace: openshift-ingress-operator}, spec: {replicas: 99}}
- {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: alpha, namespace: openshift-ingress-operator}}
- {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: elsewhere, namespace: openshift-ingress}}
- {apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: nowhere}}
`),
		// Two objects of one name, of which the first is of another namespace.
		"namespaces/two/apps/deployments.yaml": file(`
apiVersion: apps/v1
kind: DeploymentList
items:
- {metadata: {name: same, namespace: one}, spec: {replicas: 1}}
- {metadata: {name: same, namespace: two}, spec: {replicas: 2}}
`),
		"namespaces/two/apps/deployments/astray.yaml": file("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: astray, namespace: one}\n"),
		// Typed lists leave the type of their items out.
		"namespaces/openshift-ingress/apps/deployments.yaml": file(
			"apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: router-default, namespace: openshift-ingress}\n"),
		"namespaces/empty/apps/deployments.yaml":  file("apiVersion: apps/v1\nkind: DeploymentList\nitems: []\n"),
		"namespaces/broken/apps/deployments.yaml": file("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"),
	}
	if top == "" {
		return files
	}
	below := fstest.MapFS{"timestamp": file("2026"), "event-filter.html": file("<html>")}
	for name, f := range files {
		below[top+"/"+name] = f
	}
	return below
}

func open(t *testing.T, files fs.FS) *mustgather.Tree {
	t.Helper()
	tree, err := mustgather.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestOpen(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"nothing":             {},
		"something else":      {"src/main.go": file("package main")},
		"two deep":            {"a/b/namespaces/x/y.yaml": file("")},
		"a file of that name": {"namespaces": file("")},
	} {
		if _, err := mustgather.Open(files); !errors.Is(err, mustgather.ErrNoTree) {
			t.Errorf("%s: %v, want ErrNoTree", name, err)
		}
	}
	for _, name := range []string{"namespaces/x/core/pods.yaml", "top/cluster-scoped-resources/core/nodes.yaml"} {
		if _, err := mustgather.Open(fstest.MapFS{name: file("")}); err != nil {
			t.Errorf("%s alone: %v", name, err)
		}
	}
}

func TestGet(t *testing.T) {
	tests := map[string]struct {
		resource        schema.GroupResource
		namespace, name string
		err             error
		names           string // in the error
		kind            string
	}{
		"cluster-scoped in a list":       {resource: infrastructures, name: "cluster", kind: "Infrastructure"},
		"cluster-scoped, core group":     {resource: nodes, name: "a", kind: "Node"},
		"namespaced":                     {resource: ingressControllers, namespace: "openshift-ingress-operator", name: "default", kind: "IngressController"},
		"namespaced in a list":           {resource: ingressControllers, namespace: "openshift-ingress-operator", name: "alpha", kind: "IngressController"},
		"typed list without types":       {resource: deployments, namespace: "openshift-ingress", name: "router-default", kind: "Deployment"},
		"another name":                   {resource: nodes, name: "c", err: mustgather.ErrNotFound, names: "nodes c"},
		"another namespace":              {resource: deployments, namespace: "nowhere", name: "router-default", err: mustgather.ErrNotFound, names: "nowhere"},
		"another group":                  {resource: schema.GroupResource{Group: "x", Resource: "nodes"}, name: "a", err: mustgather.ErrNotFound},
		"not in the list":                {resource: deployments, namespace: "empty", name: "a", err: mustgather.ErrNotFound},
		"scope is part of the identity":  {resource: nodes, namespace: "openshift-ingress", name: "a", err: mustgather.ErrNotFound},
		"corrupt":                        {resource: nodes, name: "broken", err: mustgather.ErrCorrupt, names: "nodes/broken.yaml"},
		"empty":                          {resource: nodes, name: "empty", err: mustgather.ErrCorrupt, names: "nodes/empty.yaml"},
		"holds another object":           {resource: nodes, name: "other", err: mustgather.ErrCorrupt, names: "nodes/other.yaml"},
		"holds an object without a name": {resource: nodes, name: "nameless", err: mustgather.ErrCorrupt, names: "nodes/nameless.yaml"},
		"list that is none":              {resource: deployments, namespace: "broken", name: "x", err: mustgather.ErrCorrupt, names: "deployments.yaml"},
		"no path":                        {resource: nodes, name: "../nodes/a", err: mustgather.ErrNotFound},
		"no path to what would be found": {resource: nodes, name: "x/../a", err: mustgather.ErrNotFound, names: "nodes x/../a"},
		"no path to what is corrupt":     {resource: nodes, name: "../nodes/broken", err: mustgather.ErrNotFound},
		"in a list, of another namespace": {
			resource: ingressControllers, namespace: "openshift-ingress-operator", name: "elsewhere", err: mustgather.ErrNotFound, names: "ingresscontrollers.operator.openshift.io elsewhere",
		},
		"in a list, of no namespace":  {resource: ingressControllers, namespace: "openshift-ingress-operator", name: "nowhere", err: mustgather.ErrNotFound},
		"a file of another namespace": {resource: deployments, namespace: "two", name: "astray", err: mustgather.ErrCorrupt, names: `"astray" in namespace "one"`},
	}
	for _, top := range []string{"", "quay-io-example-sha256-0123"} {
		opened := open(t, tree(top))
		for name, test := range tests {
			t.Run(name+" "+top, func(t *testing.T) {
				got, err := opened.Get(test.resource, test.namespace, test.name)
				if !errors.Is(err, test.err) || (err != nil && !strings.Contains(err.Error(), test.names)) {
					t.Fatalf("got %v, want %v naming %q", err, test.err, test.names)
				}
				if err == nil && (got.GetKind() != test.kind || got.GetName() != test.name || got.GetAPIVersion() == "") {
					t.Errorf("got %v", got)
				}
				if err != nil && got != nil {
					t.Errorf("an object %v beside the error", got)
				}
			})
		}
	}
}

// An object's own file is newer than the list, and whole numbers stay whole.
func TestGetPrefersTheFileOfItsOwn(t *testing.T) {
	object, err := open(t, tree("")).Get(ingressControllers, "openshift-ingress-operator", "default")
	if err != nil {
		t.Fatal(err)
	}
	if replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas"); err != nil || !found || replicas != 2 {
		t.Errorf("replicas %d, %t, %v, want 2", replicas, found, err)
	}
}

// Of two objects of one name, the one of the namespace that was asked for is meant, wherever it stands in the list.
func TestNamesakes(t *testing.T) {
	opened := open(t, tree(""))
	one, err := opened.Get(deployments, "two", "same")
	if err != nil {
		t.Fatal(err)
	}
	all, _ := opened.List(deployments, "two")
	for _, object := range append(all, *one) {
		if replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas"); err != nil || replicas != 2 || object.GetNamespace() != "two" {
			t.Errorf("%s/%s with %d replicas, %v, want the one of namespace two", object.GetNamespace(), object.GetName(), replicas, err)
		}
	}
	if len(all) != 1 {
		t.Errorf("%d objects, want one", len(all))
	}
}

func TestList(t *testing.T) {
	tests := map[string]struct {
		resource  schema.GroupResource
		namespace string
		want      []string
		corrupt   []string
	}{
		"one corrupt file does not hide the others": {nodes, "", []string{"a", "b", "z"}, []string{"broken.yaml", "empty.yaml", "nameless.yaml"}},
		"list file":                      {infrastructures, "", []string{"cluster"}, nil},
		"files and list, each name once": {ingressControllers, "openshift-ingress-operator", []string{"alpha", "default"}, nil},
		"empty list":                     {deployments, "empty", nil, nil},
		"nothing":                        {deployments, "nowhere", nil, nil},
		"corrupt list":                   {deployments, "broken", nil, []string{"deployments.yaml"}},
		"nothing of another namespace":   {deployments, "two", []string{"same"}, []string{"astray.yaml"}},
	}
	for _, top := range []string{"", "quay-io-example-sha256-0123"} {
		opened := open(t, tree(top))
		for name, test := range tests {
			t.Run(name+" "+top, func(t *testing.T) {
				objects, err := opened.List(test.resource, test.namespace)
				if (err != nil) != (len(test.corrupt) > 0) || (err != nil && !errors.Is(err, mustgather.ErrCorrupt)) {
					t.Fatalf("got %v, want errors for %v", err, test.corrupt)
				}
				for _, name := range test.corrupt {
					if !strings.Contains(err.Error(), name) {
						t.Errorf("%q does not name %s", err, name)
					}
				}
				var names []string
				for _, object := range objects {
					names = append(names, object.GetName())
				}
				if diff := cmp.Diff(test.want, names, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("names (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A must-gather of several images has a tree for each.
func TestSeveralTrees(t *testing.T) {
	files := fstest.MapFS{
		"image-1/cluster-scoped-resources/core/nodes/a.yaml": file("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"),
		"image-2/cluster-scoped-resources/core/nodes/b.yaml": file("apiVersion: v1\nkind: Node\nmetadata: {name: b}\n"),
	}
	opened := open(t, files)
	for _, name := range []string{"a", "b"} {
		if _, err := opened.Get(nodes, "", name); err != nil {
			t.Error(err)
		}
	}
	if objects, err := opened.List(nodes, ""); err != nil || len(objects) != 2 {
		t.Errorf("got %v, %v, want two nodes", objects, err)
	}
}

func ExampleTree_Get() {
	files := fstest.MapFS{
		"cluster-scoped-resources/config.openshift.io/infrastructures/cluster.yaml": &fstest.MapFile{Data: []byte(
			"apiVersion: config.openshift.io/v1\nkind: Infrastructure\nmetadata: {name: cluster}\nstatus: {infrastructureTopology: SingleReplica}\n")},
	}
	tree, err := mustgather.Open(files)
	if err != nil {
		fmt.Println(err)
		return
	}
	object, err := tree.Get(schema.GroupResource{Group: "config.openshift.io", Resource: "infrastructures"}, "", "cluster")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(object.GetKind(), object.GetName(), object.Object["status"])
	// Output: Infrastructure cluster map[infrastructureTopology:SingleReplica]
}
