// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/solonode/sno/patch/ownership"
)

// Each port of a Service has its own owners: ports are a map by port and protocol.
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
		object *metav1.ObjectMeta
		path   fieldpath.Path
		want   []string
	}{
		"the element":                {appliedBy("a", element), port(80), []string{"a"}},
		"another element":            {appliedBy("a", element), port(81), nil},
		"a field in the element":     {appliedBy("a", inside), port(80), []string{"a"}},
		"the list as one value":      {appliedBy("a", `{"f:spec":{"f:ports":{}}}`), port(80), []string{"a"}},
		"a list of others' elements": {appliedBy("a", `{"f:spec":{"f:ports":{}}}`, "b", element), port(80), []string{"b"}},
		"a member of a set":          {appliedBy("a", set), member("x"), []string{"a"}},
		"another member of a set":    {appliedBy("a", set), member("y"), nil},
		"an annotation with dots": {
			appliedBy("a", `{"f:metadata":{"f:annotations":{"f:a.b/c":{}}}}`),
			fieldpath.MakePathOrDie("metadata", "annotations", "a.b/c"), []string{"a"},
		},
	}
	for name, test := range tests {
		got, err := ownership.ManagersAt(test.object, test.path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		others, err := ownership.OthersAt(test.object, test.path, "a")
		if err != nil {
			t.Fatal(err)
		}
		if len(others) != len(test.want) && !slices.Equal(test.want, []string{"a"}) {
			t.Errorf("%s: others than a: %v", name, others)
		}
	}
	if got, err := ownership.OthersAt(&metav1.ObjectMeta{}, port(80), "a"); err != nil || !cmp.Equal(got, []string{ownership.BeforeFirstApply}) {
		t.Errorf("without managedFields: %v, %v", got, err)
	}
}

func TestAtomic(t *testing.T) {
	tests := map[string]struct {
		object *metav1.ObjectMeta
		path   fieldpath.Path
		want   bool
	}{
		"no owner":          {appliedBy(), fieldpath.MakePathOrDie("spec"), false},
		"no path":           {appliedBy("a", `{"f:spec":{}}`), nil, false},
		"one value":         {appliedBy("a", `{"f:spec":{"f:list":{}}}`), fieldpath.MakePathOrDie("spec", "list"), true},
		"a part of it":      {appliedBy("a", `{"f:spec":{"f:list":{}}}`), fieldpath.MakePathOrDie("spec", "list", "x"), false},
		"the map around it": {appliedBy("a", `{"f:spec":{"f:list":{}}}`), fieldpath.MakePathOrDie("spec"), false},
		"with members":      {appliedBy("a", `{"f:spec":{"f:list":{".":{},"f:x":{}}}}`), fieldpath.MakePathOrDie("spec", "list"), false},
		"with others' members": {appliedBy("a", `{"f:spec":{"f:list":{}}}`, "b", `{"f:spec":{"f:list":{"f:x":{}}}}`), fieldpath.MakePathOrDie("spec",
			"list"), false},
		"an element of a list":  {appliedBy("a", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{}}}}`), port(80), true},
		"another one of a list": {appliedBy("a", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{}}}}`), port(81), false},
	}
	for name, test := range tests {
		if got, err := ownership.Atomic(test.object, test.path); err != nil || got != test.want {
			t.Errorf("%s: %t, %v, want %t", name, got, err, test.want)
		}
	}
}
