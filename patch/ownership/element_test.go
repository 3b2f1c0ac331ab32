package ownership_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/solonode/sno/patch/ownership"
)

// Whose is one port of a Service? Its list is a map by port and protocol, so each element has owners of its own.
func ExampleManagersAt() {
	service := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		applied("gateway", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}`),
		applied("oc", `{"f:spec":{"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}`),
	}}
	path := fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("port", 443, "protocol", "TCP"))
	fmt.Println(ownership.ManagersAt(service, path))
	fmt.Println(ownership.Atomic(service, path[:2]))
	// Output:
	// [oc] <nil>
	// false <nil>
}

// port is the path of one element of a list with two keys.
func port(n int) fieldpath.Path {
	return fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("protocol", "TCP", "port", n))
}

func TestManagersAt(t *testing.T) {
	element := `{"f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:name":{}}}}}`
	inside := `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:name":{}}}}}`
	set := `{"f:metadata":{"f:finalizers":{"v:\"x\"":{}}}}`
	member := func(v string) fieldpath.Path {
		return fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface(v))
	}
	tests := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		path    fieldpath.Path
		want    []string
	}{
		"the element":                 {[]metav1.ManagedFieldsEntry{applied("a", element)}, port(80), []string{"a"}},
		"another element":             {[]metav1.ManagedFieldsEntry{applied("a", element)}, port(81), nil},
		"a field in the element":      {[]metav1.ManagedFieldsEntry{applied("a", inside)}, port(80), []string{"a"}},
		"the list, all of it":         {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:ports":{}}}`)}, port(80), []string{"a"}},
		"the list, emptied by others": {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:ports":{}}}`), applied("b", element)}, port(80), []string{"b"}},
		"a member of a set":           {[]metav1.ManagedFieldsEntry{applied("a", set)}, member("x"), []string{"a"}},
		"another member of a set":     {[]metav1.ManagedFieldsEntry{applied("a", set)}, member("y"), nil},
		"an annotation with dots": {
			[]metav1.ManagedFieldsEntry{applied("a", `{"f:metadata":{"f:annotations":{"f:a.b/c":{}}}}`)},
			fieldpath.MakePathOrDie("metadata", "annotations", "a.b/c"), []string{"a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{ManagedFields: test.entries}
			got, err := ownership.ManagersAt(object, test.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("managers of %s (-want +got):\n%s", test.path, diff)
			}
			others, err := ownership.OthersAt(object, test.path, "a")
			if err != nil {
				t.Fatal(err)
			}
			if len(others) != len(test.want) && (len(test.want) != 1 || test.want[0] != "a") {
				t.Errorf("others than a: %v", others)
			}
		})
	}
	if got, err := ownership.OthersAt(&metav1.ObjectMeta{}, port(80), "a"); err != nil || !cmp.Equal(got, []string{ownership.BeforeFirstApply}) {
		t.Errorf("unsigned: %v, %v", got, err)
	}
}

func TestAtomic(t *testing.T) {
	tests := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		path    fieldpath.Path
		want    bool
	}{
		"nobody's":              {nil, fieldpath.MakePathOrDie("spec"), false},
		"no path":               {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{}}`)}, nil, false},
		"one value":             {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:list":{}}}`)}, fieldpath.MakePathOrDie("spec", "list"), true},
		"a part of it":          {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:list":{}}}`)}, fieldpath.MakePathOrDie("spec", "list", "x"), false},
		"the map around it":     {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:list":{}}}`)}, fieldpath.MakePathOrDie("spec"), false},
		"with members":          {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:list":{".":{},"f:x":{}}}}`)}, fieldpath.MakePathOrDie("spec", "list"), false},
		"with others' members":  {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:list":{}}}`), applied("b", `{"f:spec":{"f:list":{"f:x":{}}}}`)}, fieldpath.MakePathOrDie("spec", "list"), false},
		"an element of a list":  {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{}}}}`)}, port(80), true},
		"another one of a list": {[]metav1.ManagedFieldsEntry{applied("a", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{}}}}`)}, port(81), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := ownership.Atomic(&metav1.ObjectMeta{ManagedFields: test.entries}, test.path); err != nil || got != test.want {
				t.Errorf("%t, %v, want %t", got, err, test.want)
			}
		})
	}
	damaged := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{applied("us", `{"f:spec":`)}}
	if _, err := ownership.Atomic(damaged, fieldpath.MakePathOrDie("spec")); !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("damaged: %v, want ErrManagedFields", err)
	}
	if _, err := ownership.OthersAt(damaged, fieldpath.MakePathOrDie("spec")); !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("damaged: %v, want ErrManagedFields", err)
	}
}

// The entries of ClusterVersion's spec.overrides have owners of their own, and what the API server calls atomic is.
func TestElementsAgreeWithTheAPIServer(t *testing.T) {
	server := shared.Server(t)
	ctx, admin := t.Context(), server.Admin(t)
	version := func(spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"})
		u.SetName("version")
		if spec != nil {
			u.Object["spec"] = spec
		}
		return u
	}
	override := func(name string) map[string]any {
		return map[string]any{"kind": "Deployment", "group": "apps", "namespace": "openshift-console", "name": name, "unmanaged": true}
	}
	list := fieldpath.MakePathOrDie("spec", "overrides")
	element := func(name string) fieldpath.Path {
		return append(list.Copy(), fieldpath.PathElement{Key: fieldpath.KeyByFields("kind", "Deployment", "group", "apps", "namespace", "openshift-console", "name", name)})
	}
	spec := map[string]any{"clusterID": "5a2b5b6e-1c6d-4a53-8b36-0a1f7b9a2c3d", "overrides": []any{override("theirs")}}
	if err := admin.Create(ctx, version(spec), client.FieldOwner("oc")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(ctx), version(nil)); err != nil {
			t.Log(err)
		}
	})
	check := func(path fieldpath.Path, want ...string) {
		t.Helper()
		live := version(nil)
		if err := admin.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		got, err := ownership.ManagersAt(live, path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("managers of %s (-want +got):\n%s", path, diff)
		}
		if atomic, err := ownership.Atomic(live, list); err != nil || atomic {
			t.Errorf("the list is atomic: %t, %v", atomic, err)
		}
	}
	check(element("theirs"), "oc")
	check(element("downloads"))
	intent := version(map[string]any{"overrides": []any{override("downloads")}})
	if err := admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.FieldOwner(us)); err != nil {
		t.Fatal(err)
	}
	check(element("downloads"), us)
	check(element("theirs"), "oc")
	check(list, "oc", us)

	atomics := map[string]bool{
		".spec.nodePlacement.nodeSelector": true, ".spec.nodePlacement.tolerations": true, ".spec.nodePlacement": false, ".spec.replicas": true,
		// A field without a schema is kept account of key by key.
		".spec.unsupportedConfigOverrides": false, ".spec.unsupportedConfigOverrides.a": true,
	}
	controller := &unstructured.Unstructured{Object: map[string]any{}}
	controller.SetGroupVersionKind(properties["IngressController"].kind)
	controller.SetNamespace(server.Namespace(t))
	controller.SetName("default")
	controller.Object["spec"] = map[string]any{"domain": "apps.example.org"}
	if err := admin.Create(ctx, controller, client.FieldOwner("stock")); err != nil {
		t.Fatal(err)
	}
	patch := `{"spec":{"replicas":1,"unsupportedConfigOverrides":{"a":true},"nodePlacement":{"nodeSelector":{"matchLabels":{"a":"b"}},"tolerations":[{"key":"a"}]}}}`
	if err := admin.Patch(ctx, controller, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("oc")); err != nil {
		t.Fatal(err)
	}
	for field, want := range atomics {
		path, err := ownership.ParsePath(field)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ownership.Atomic(controller, path); err != nil || got != want {
			t.Errorf("%s is atomic: %t, %v, want %t", field, got, err, want)
		}
	}
}
