package offline_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/cli/offline"
	"github.com/solonode/sno/patch/mustgather"
)

func pod(namespace, name, node string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(`{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, namespace: ` + namespace +
		`, labels: {app: ` + name + `}}, spec: {nodeName: ` + node + `}}`)}
}

func newClient(t *testing.T) *offline.Client {
	t.Helper()
	tree, err := mustgather.Open(fstest.MapFS{
		"namespaces/one/core/pods/a.yaml":            pod("one", "a", "master-0"),
		"namespaces/two/core/pods/b.yaml":            pod("two", "b", "master-0"),
		"namespaces/two/core/pods/c.yaml":            pod("two", "c", "worker-0"),
		"namespaces/two/core/pods/broken.yaml":       {Data: []byte("{")},
		"namespaces/two/core/secrets/s.yaml":         {Data: []byte(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: two}, data: {key: c2VjcmV0}}`)},
		"namespaces/two/core/configmaps.yaml":        {Data: []byte(`{apiVersion: v1, kind: ConfigMapList, items: []}`)},
		"cluster-scoped-resources/core/nodes/m.yaml": {Data: []byte(`{apiVersion: v1, kind: Node, metadata: {name: m, labels: {role: master}}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return offline.New(tree,
		offline.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespaced: true},
		offline.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node")})
}

func names(list *corev1.PodList) []string {
	var all []string
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	return all
}

func TestList(t *testing.T) {
	for name, test := range map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"everywhere":       {nil, []string{"a", "b", "c"}},
		"in one namespace": {[]client.ListOption{client.InNamespace("two")}, []string{"b", "c"}},
		"on a node":        {[]client.ListOption{client.MatchingFields{"spec.nodeName": "master-0"}}, []string{"a", "b"}},
		"by label":         {[]client.ListOption{client.MatchingLabels{"app": "c"}}, []string{"c"}},
		"none":             {[]client.ListOption{client.MatchingLabels{"app": "d"}}, nil},
	} {
		c, list := newClient(t), &corev1.PodList{}
		if err := c.List(t.Context(), list, test.options...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, names(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if gaps := c.Gaps(); len(gaps) != 1 || !errors.Is(gaps[0].Err, mustgather.ErrCorrupt) {
			t.Errorf("%s: gaps %v; want the broken file, once", name, gaps)
		}
	}
	c := newClient(t)
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NodeList"})
	if err := c.List(t.Context(), metadata, client.MatchingLabels{"role": "master"}); err != nil || len(metadata.Items) != 1 || metadata.Items[0].Name != "m" {
		t.Errorf("metadata: %v, %v", metadata.Items, err)
	}
	if gaps := c.Gaps(); len(gaps) != 0 {
		t.Errorf("gaps: %v", gaps)
	}
}

// What was gathered and is not there does not exist; of what was not gathered nothing is known.
func TestGaps(t *testing.T) {
	for name, test := range map[string]struct {
		key  client.ObjectKey
		into client.Object
		gaps string
	}{
		"not in the list":     {client.ObjectKey{Namespace: "two", Name: "x"}, &corev1.ConfigMap{}, ""},
		"not in the folder":   {client.ObjectKey{Namespace: "two", Name: "x"}, &corev1.Pod{}, ""},
		"no list, no folder":  {client.ObjectKey{Namespace: "one", Name: "x"}, &corev1.ConfigMap{}, "not in the must-gather: namespaces/one/core/configmaps/x.yaml"},
		"namespace not there": {client.ObjectKey{Namespace: "three", Name: "x"}, &corev1.Pod{}, "not in the must-gather: namespaces/three/core/pods/x.yaml"},
	} {
		c := newClient(t)
		for range 2 {
			if err := c.Get(t.Context(), test.key, test.into); !apierrors.IsNotFound(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		got := ""
		for _, gap := range c.Gaps() {
			got += gap.String()
		}
		if got != test.gaps {
			t.Errorf("%s: gaps %q, want %q", name, got, test.gaps)
		}
	}
	c := newClient(t)
	if err := c.List(t.Context(), &corev1.PersistentVolumeList{}); err != nil || len(c.Gaps()) != 1 {
		t.Errorf("a kind of Kubernetes that was not gathered: %v, %v", err, c.Gaps())
	}
	machines := &unstructured.UnstructuredList{}
	machines.SetGroupVersionKind(schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineList"})
	if err := c.List(t.Context(), machines); err != nil || len(c.Gaps()) != 1 {
		t.Errorf("a kind that the cluster may not have: %v, %v", err, c.Gaps())
	}
	if _, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: "machine.openshift.io", Kind: "Machine"}); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that nobody named: %v", err)
	}
}

// Whether there is a Secret may be asked, and nothing else.
func TestSecretsStayClosed(t *testing.T) {
	c, secret := newClient(t), &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "two", Name: "s"}, secret); err != nil || len(secret.Data) > 0 {
		t.Errorf("%v, %v", err, secret.Data)
	}
}

func TestReadOnly(t *testing.T) {
	c, o := newClient(t), &corev1.Pod{}
	ctx := t.Context()
	for name, err := range map[string]error{
		"create": c.Create(ctx, o), "update": c.Update(ctx, o), "delete": c.Delete(ctx, o), "patch": c.Patch(ctx, o, client.Merge),
		"delete all": c.DeleteAllOf(ctx, o), "apply": c.Apply(ctx, nil), "status": c.Status().Update(ctx, o), "eviction": c.SubResource("eviction").Create(ctx, o, o),
	} {
		if !errors.Is(err, offline.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
