package rehearsal_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/offline"
	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/mustgather"
)

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: ns
  uid: u
  resourceVersion: "7"
  managedFields:
  - {apiVersion: v1, fieldsType: FieldsV1, manager: person, operation: Update, fieldsV1: {"f:data": {"f:a": {}}}}
data:
  a: theirs
`

var at = client.ObjectKey{Namespace: "ns", Name: "c"}

// rehearse is a client on a cluster that has one ConfigMap.
func rehearse(t *testing.T) *rehearsal.Client {
	t.Helper()
	tree, err := mustgather.Open(fstest.MapFS{"namespaces/ns/core/configmaps/c.yaml": {Data: []byte(configMap)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rehearsal.New(offline.New(tree, offline.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespaced: true}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

const head = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns`

func applied(t *testing.T, c *rehearsal.Client, text string, opts ...client.ApplyOption) error {
	t.Helper()
	return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object(t, text)), append(opts, client.FieldOwner("us"))...)
}

func data(t *testing.T, c *rehearsal.Client) map[string]string {
	t.Helper()
	now := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), at, now); err != nil {
		t.Fatal(err)
	}
	return now.Data
}

func TestApply(t *testing.T) {
	c := rehearse(t)
	err := applied(t, c, head+`}, data: {a: ours}}`)
	if diff := cmp.Diff([]apply.Conflict{{Field: ".data.a", Manager: "person"}}, apply.ConflictsOf(err)); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
	for _, text := range []string{`, uid: other}, data: {b: ours}}`, `, resourceVersion: "6"}, data: {b: ours}}`} {
		if err := applied(t, c, head+text); !apierrors.IsConflict(err) || len(apply.ConflictsOf(err)) > 0 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if len(c.Writes()) > 0 {
		t.Errorf("what was refused is written: %v", c.Writes())
	}
	if err := applied(t, c, head+`}, data: {a: ours}}`, client.ForceOwnership, client.DryRunAll); err != nil || data(t, c)["a"] != "theirs" {
		t.Errorf("a dry run: %v, %v", err, data(t, c))
	}
	if err := applied(t, c, head+`}, data: {a: ours, b: ours}}`, client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	// The next write reads what the first one wrote.
	if err := applied(t, c, head+`, resourceVersion: "8"}, data: {b: ours}}`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b": "ours"}, data(t, c)); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if writes := c.Writes(); len(writes) != 1 || writes[0].Before.GetResourceVersion() != "7" || writes[0].After.GetResourceVersion() != "9" {
		t.Errorf("writes: %v", writes)
	}
}

func TestUnset(t *testing.T) {
	c := rehearse(t)
	if err := applied(t, c, head+`}, data: {a: null}}`, client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	if len(data(t, c)) > 0 {
		t.Errorf("data: %v", data(t, c))
	}
}

func TestPatchAndDelete(t *testing.T) {
	c := rehearse(t)
	target := object(t, configMap)
	patch := func(kind types.PatchType, body string) error {
		return c.Patch(t.Context(), target.DeepCopy(), client.RawPatch(kind, []byte(body)), client.FieldOwner("us"))
	}
	if err := patch(types.MergePatchType, `{"metadata":{"resourceVersion":"6"},"data":{"a":null}}`); !apierrors.IsConflict(err) {
		t.Errorf("for another version: %v", err)
	}
	if err := patch(types.JSONPatchType, `[{"op":"test","path":"/data/a","value":"ours"}]`); !apierrors.IsInvalid(err) {
		t.Errorf("a test that fails: %v", err)
	}
	if err := patch(types.MergePatchType, `{"metadata":{"resourceVersion":"7"},"data":{"a":null,"b":"ours"}}`); err != nil {
		t.Fatal(err)
	}
	if err := patch(types.JSONPatchType, `[{"op":"add","path":"/data/c","value":"more"}]`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b": "ours", "c": "more"}, data(t, c)); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	all := &unstructured.UnstructuredList{}
	all.SetAPIVersion("v1")
	all.SetKind("ConfigMapList")
	list := func() int {
		if err := c.List(t.Context(), all, client.InNamespace("ns")); err != nil {
			t.Fatal(err)
		}
		return len(all.Items)
	}
	if n := list(); n != 1 || all.Items[0].GetResourceVersion() != "9" {
		t.Errorf("listed: %v", all.Items)
	}
	if err := c.Delete(t.Context(), target, client.Preconditions{ResourceVersion: ptr.To("7")}); !apierrors.IsConflict(err) {
		t.Errorf("of another version: %v", err)
	}
	if err := c.Delete(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), at, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) || list() != 0 {
		t.Errorf("it is still there: %v", err)
	}
	// Made again it is another object.
	if err := applied(t, c, head+`}, data: {a: ours}}`); err != nil {
		t.Fatal(err)
	}
	if w := c.Writes(); len(w) != 1 || w[0].After.GetUID() == "u" || w[0].After.GetResourceVersion() != "1" {
		t.Errorf("made again: %v", w)
	}
}

// Nothing gets through to the cluster, however it is written.
func TestRefuses(t *testing.T) {
	c, u := rehearse(t), object(t, configMap)
	ctx := context.WithoutCancel(t.Context())
	for name, err := range map[string]error{
		"create": c.Create(ctx, u), "update": c.Update(ctx, u), "delete all": c.DeleteAllOf(ctx, u),
		"status update": c.Status().Update(ctx, u), "status create": c.Status().Create(ctx, u, u),
		"status patch": c.Status().Patch(ctx, u, client.Merge), "status apply": c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u)),
		"eviction": c.SubResource("eviction").Create(ctx, u, u), "scale": c.SubResource("scale").Get(ctx, u, u),
	} {
		if !errors.Is(err, rehearsal.ErrNotRehearsed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who stripped managedFields has hidden who owns what, so nobody objects.
func TestWithoutOwners(t *testing.T) {
	tree, err := mustgather.Open(fstest.MapFS{"namespaces/ns/core/configmaps/c.yaml": {Data: []byte(head + `, uid: u}, data: {a: theirs}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rehearsal.New(offline.New(tree), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := applied(t, c, head+`}, data: {a: ours}}`); err != nil || data(t, c)["a"] != "ours" {
		t.Errorf("%v, %v", err, data(t, c))
	}
}
