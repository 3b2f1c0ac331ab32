// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/cli/mustgather"
	"github.com/solonode/sno/cli/rehearsal"
	ssa "github.com/solonode/sno/patch/apply"
)

const configMap = `
{apiVersion: v1, kind: ConfigMap, data: {a: theirs}, metadata: {name: c, namespace: ns, uid: u, resourceVersion: "7", managedFields: [
  {apiVersion: v1, fieldsType: FieldsV1, manager: person, operation: Update, fieldsV1: {"f:data": {"f:a": {}}}}]}}`

func rehearse(t *testing.T, text string) *rehearsal.Client {
	t.Helper()
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	gathered, err := mustgather.New(fstest.MapFS{"namespaces/ns/core/configmaps/c.yaml": {Data: []byte(text)}}, kinds)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rehearsal.New(gathered, nil)
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

// state returns the ConfigMap in one line, and compares it with the list.
func state(t *testing.T, c *rehearsal.Client) string {
	t.Helper()
	now, all := &corev1.ConfigMap{}, &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(t.Context(), all, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, now)
	if apierrors.IsNotFound(err) && len(all.Items) == 0 {
		return "gone"
	}
	if err != nil || len(all.Items) != 1 || all.Items[0].GetResourceVersion() != now.ResourceVersion {
		t.Errorf("%v, listed: %v", err, all.Items)
	}
	return fmt.Sprint(now.UID, " ", now.ResourceVersion, " ", now.Data)
}

func TestWrites(t *testing.T) {
	c, target := rehearse(t, configMap), object(t, configMap)
	apply := func(text string, opts ...client.ApplyOption) error {
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object(t, head+text)), append(opts, client.FieldOwner("us"))...)
	}
	patch := func(body string) error {
		return c.Patch(t.Context(), target.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner("us"))
	}
	remove := func(opts ...client.DeleteOption) error { return c.Delete(t.Context(), target, opts...) }
	isFieldConflict := func(err error) bool {
		return cmp.Equal([]ssa.Conflict{{Field: ".data.a", Manager: "person"}}, ssa.ConflictsOf(err))
	}
	isConflict := func(err error) bool { return apierrors.IsConflict(err) && len(ssa.ConflictsOf(err)) == 0 }
	done := func(err error) bool { return err == nil }
	const untouched = "u 7 map[a:theirs]"
	for i, step := range []struct {
		err   func() error
		is    func(error) bool
		state string
	}{
		{func() error { return apply(`}, data: {a: ours}}`) }, isFieldConflict, untouched},
		{func() error { return apply(`, uid: other}, data: {b: ours}}`) }, isConflict, untouched},
		{func() error { return apply(`, resourceVersion: "6"}, data: {b: ours}}`) }, isConflict, untouched},
		{func() error { return apply(`}, data: {a: ours}}`, client.ForceOwnership, client.DryRunAll) }, done, untouched},
		{func() error { return apply(`}, data: {a: null}}`, client.ForceOwnership) }, done, "u 8 map[]"},
		{func() error { return apply(`}, data: {a: ours, b: ours}}`, client.ForceOwnership) }, done, "u 9 map[a:ours b:ours]"},
		{func() error { return apply(`, resourceVersion: "9"}, data: {b: ours}}`) }, done, "u 10 map[b:ours]"},
		{func() error { return apply(`}, data: {b: ours}}`) }, done, "u 10 map[b:ours]"},
		{func() error { return patch(`{"metadata":{"resourceVersion":"6"},"data":{"a":"ours"}}`) }, isConflict, "u 10 map[b:ours]"},
		{func() error { return patch(`{"metadata":{"resourceVersion":"10"},"data":{"b":null,"d":"ours"}}`) }, done, "u 11 map[d:ours]"},
		{func() error { return remove(client.Preconditions{ResourceVersion: ptr.To("7")}) }, isConflict, "u 11 map[d:ours]"},
		{func() error { return remove() }, done, "gone"},
		{func() error { return remove() }, apierrors.IsNotFound, "gone"},
		{func() error { return apply(`}, data: {a: ours}}`) }, done, "rehearsed-c 1 map[a:ours]"},
	} {
		if err := step.err(); !step.is(err) || state(t, c) != step.state {
			t.Errorf("step %d: %v, %s; want %s", i, err, state(t, c), step.state)
		}
	}
	if w := c.Writes(); len(w) != 1 || w[0].Before.GetResourceVersion() != "7" || w[0].After.GetUID() != "rehearsed-c" {
		t.Errorf("writes: %v", w)
	}
	c = rehearse(t, head+`, uid: u, resourceVersion: "7"}, data: {a: theirs}}`)
	if err := apply(`}, data: {a: ours}}`); err != nil || state(t, c) != "u 8 map[a:ours]" {
		t.Errorf("without owners: %v, %s", err, state(t, c))
	}
}

func TestRefuses(t *testing.T) {
	c, u := rehearse(t, configMap), object(t, configMap)
	ctx := context.WithoutCancel(t.Context())
	for name, err := range map[string]error{
		"JSON patch": c.Patch(ctx, u, client.RawPatch(types.JSONPatchType, []byte("[]"))),
		"create":     c.Create(ctx, u), "update": c.Update(ctx, u), "delete all": c.DeleteAllOf(ctx, u),
		"status update": c.Status().Update(ctx, u), "status create": c.Status().Create(ctx, u, u),
		"status patch": c.Status().Patch(ctx, u, client.Merge), "status apply": c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u)),
		"eviction": c.SubResource("eviction").Create(ctx, u, u), "scale": c.SubResource("scale").Get(ctx, u, u),
	} {
		if !errors.Is(err, rehearsal.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
