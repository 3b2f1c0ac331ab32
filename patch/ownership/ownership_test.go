// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch/ownership"
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource, FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

func applied(manager, fields string) metav1.ManagedFieldsEntry {
	return entry(manager, metav1.ManagedFieldsOperationApply, "", fields)
}

// appliedBy returns an object with pairs of a manager and the fields that it has applied.
func appliedBy(pairs ...string) *metav1.ObjectMeta {
	object := &metav1.ObjectMeta{}
	for i := 0; i < len(pairs); i += 2 {
		object.ManagedFields = append(object.ManagedFields, applied(pairs[i], pairs[i+1]))
	}
	return object
}

func TestParsePath(t *testing.T) {
	for field, want := range map[string]string{".spec": ".spec", ".spec.nodePlacement.nodeSelector": ".spec.nodePlacement.nodeSelector"} {
		if path, err := ownership.ParsePath(field); err != nil || path.String() != want {
			t.Errorf("%q: %v, %v", field, path, err)
		}
	}
	for _, field := range []string{"", ".", "spec", "spec.replicas", "..spec", ".spec.", ".spec..replicas", `.spec.list[name="a"]`, ".spec.list[0]"} {
		if path, err := ownership.ParsePath(field); !errors.Is(err, ownership.ErrFieldPath) || path != nil {
			t.Errorf("%q: %v, %v, want ErrFieldPath", field, path, err)
		}
	}
}

func TestManagers(t *testing.T) {
	const update = metav1.ManagedFieldsOperationUpdate
	for name, test := range map[string]struct {
		object *metav1.ObjectMeta
		field  string
		want   []string
	}{
		"no owner":   {appliedBy(), ".spec.replicas", nil},
		"exact":      {appliedBy("a", `{"f:spec":{"f:replicas":{}}}`), ".spec.replicas", []string{"a"}},
		"a neighbor": {appliedBy("a", `{"f:spec":{"f:domain":{}}}`), ".spec.replicas", nil},
		"a field below": {
			appliedBy("a", `{"f:spec":{"f:nodePlacement":{"f:tolerations":{}}}}`), ".spec.nodePlacement", []string{"a"},
		},
		"the atomic value around it":           {appliedBy("a", `{"f:spec":{"f:nodeSelector":{}}}`), ".spec.nodeSelector.matchLabels.infra", []string{"a"}},
		"a map around it, with other members":  {appliedBy("a", `{"f:spec":{".":{},"f:domain":{}}}`), ".spec.replicas", nil},
		"a map that is owned with its members": {appliedBy("a", `{"f:spec":{".":{},"f:replicas":{}}}`), ".spec.replicas", []string{"a"}},
		"the map itself":                       {appliedBy("a", `{"f:spec":{".":{},"f:replicas":{}}}`), ".spec", []string{"a"}},
		"a map whose owner lost its members": {
			appliedBy("a", `{"f:spec":{"f:nodePlacement":{}}}`, "b", `{"f:spec":{"f:nodePlacement":{"f:nodeSelector":{}}}}`),
			".spec.nodePlacement.nodeSelector", []string{"b"},
		},
		"elements of a list": {appliedBy("a", `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{}}}}}`), ".spec.list", []string{"a"}},
		"elements of a set":  {appliedBy("a", `{"f:metadata":{"f:finalizers":{"v:\"x\"":{}}}}`), ".metadata.finalizers", []string{"a"}},
		"no fields":          {&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"}}}, ".spec.replicas", nil},
		"several, sorted, one of them twice": {&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			entry("b", update, "", `{"f:spec":{"f:replicas":{}}}`), applied("b", `{"f:spec":{"f:replicas":{}}}`),
			applied("a", `{"f:spec":{"f:replicas":{}}}`), applied("c", `{"f:spec":{"f:domain":{}}}`),
		}}, ".spec.replicas", []string{"a", "b"}},
		// All entries of a manager count: of all operations, subresources and versions.
		"several entries, the one between": {&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			entry("a", update, "status", `{"f:status":{"f:x":{}}}`), applied("a", `{"f:spec":{"f:replicas":{}}}`),
			entry("a", update, "", `{"f:spec":{"f:domain":{}}}`), applied("b", `{"f:spec":{"f:domain":{}}}`),
		}}, ".spec.replicas", []string{"a"}},
		"several entries, a subresource": {&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			entry("a", update, "scale", `{"f:spec":{"f:replicas":{}}}`), applied("a", `{"f:spec":{"f:domain":{}}}`),
		}}, ".spec.replicas", []string{"a"}},
	} {
		got, err := ownership.Managers(test.object, test.field)
		if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: managers of %s: %v (-want +got):\n%s", name, test.field, err, diff)
		}
	}
}

func TestOthers(t *testing.T) {
	object := appliedBy("sno", `{"f:a":{}}`, "stock", `{"f:a":{}}`, "oc", `{"f:a":{}}`)
	for want, object := range map[string]*metav1.ObjectMeta{"oc": object, ownership.BeforeFirstApply: {}} {
		if got, err := ownership.Others(object, ".a", "sno", "stock"); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%v, %v, want %s", got, err, want)
		}
	}
}

func TestApplied(t *testing.T) {
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("sno", metav1.ManagedFieldsOperationUpdate, "", `{"f:updated":{}}`),
		entry("sno", metav1.ManagedFieldsOperationApply, "status", `{"f:status":{}}`),
		applied("sno", `{"f:applied":{}}`),
		applied("other", `{"f:other":{}}`),
	}}
	for _, test := range []struct{ manager, subresource, want string }{
		{"sno", "", ".applied"}, {"sno", "status", ".status"}, {"other", "", ".other"}, {"other", "status", ""}, {"nobody", "", ""},
	} {
		set, err := ownership.Applied(object, test.manager, test.subresource)
		if err != nil || set.String() != test.want {
			t.Errorf("%s in %q: %q, %v, want %q", test.manager, test.subresource, set, err, test.want)
		}
	}
}

func TestDamagedManagedFields(t *testing.T) {
	object := appliedBy("sno", `{"f:spec":`)
	if _, err := ownership.Applied(object, "sno", ""); !errors.Is(err, ownership.ErrManagedFields) || !strings.Contains(err.Error(), `"sno"`) {
		t.Errorf("Applied: %v, want ErrManagedFields naming the manager", err)
	}
	if _, err := ownership.Managers(object, ".spec"); !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("Managers: %v, want ErrManagedFields", err)
	}
	if _, err := ownership.Atomic(object, fieldpath.MakePathOrDie("spec")); !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("Atomic: %v, want ErrManagedFields", err)
	}
	if _, err := ownership.Others(object, ".spec"); !errors.Is(err, ownership.ErrManagedFields) {
		t.Errorf("Others: %v, want ErrManagedFields", err)
	}
	if _, err := ownership.Managers(object, "spec"); !errors.Is(err, ownership.ErrFieldPath) {
		t.Errorf("Managers: %v, want ErrFieldPath", err)
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUpToDate(t *testing.T) {
	tests := map[string]struct {
		live, intent, set string
		want              bool
	}{
		"equal":         {`{"spec":{"replicas":1,"other":2}}`, `{"spec":{"replicas":1}}`, `{"f:spec":{"f:replicas":{}}}`, true},
		"value differs": {`{"spec":{"replicas":2}}`, `{"spec":{"replicas":1}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"value is gone": {`{"spec":{}}`, `{"spec":{"replicas":1}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"map is gone":   {`{}`, `{"spec":{"replicas":1}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"map is no map": {`{"spec":3}`, `{"spec":{"replicas":1}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"more is owned": {`{"spec":{"replicas":1,"domain":"d"}}`, `{"spec":{"replicas":1}}`, `{"f:spec":{"f:domain":{},"f:replicas":{}}}`, false},
		"more is owned elsewhere": {
			`{"spec":{"replicas":1},"metadata":{"annotations":{"a":"b"}}}`, `{"spec":{"replicas":1}}`,
			`{"f:metadata":{"f:annotations":{"f:a":{}}},"f:spec":{"f:replicas":{}}}`, false,
		},
		"less is owned":    {`{"spec":{"replicas":1,"domain":"d"}}`, `{"spec":{"replicas":1,"domain":"d"}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"nothing is owned": {`{"spec":{"replicas":1}}`, `{"spec":{"replicas":1}}`, `{}`, false},
		"identity is no field": {
			`{"metadata":{"name":"n","labels":{"a":"b"}}}`, `{"metadata":{"name":"n","uid":"u","namespace":"s","resourceVersion":"1","labels":{"a":"b"}}}`,
			`{"f:metadata":{"f:labels":{"f:a":{}}}}`, true,
		},
		"nothing intended, nothing owned": {`{"spec":{"replicas":1}}`, `{}`, `{}`, true},
		"nothing intended, one owned":     {`{"spec":{"replicas":1}}`, `{}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"absent and owned":                {`{"spec":{"a":{}}}`, `{"spec":{"a":{"b":null}}}`, `{"f:spec":{"f:a":{"f:b":{}}}}`, true},
		"absent and not owned":            {`{"spec":{"a":{"c":1}}}`, `{"spec":{"a":{"b":null,"c":1}}}`, `{"f:spec":{"f:a":{"f:c":{}}}}`, false},
		"absent with its map":             {`{"spec":{"c":1}}`, `{"spec":{"a":null,"c":1}}`, `{"f:spec":{"f:a":{"f:b":{}},"f:c":{}}}`, true},
		"map with more is gone":           {`{"spec":{}}`, `{"spec":{"a":{"b":null,"c":1}}}`, `{"f:spec":{"f:a":{"f:b":{},"f:c":{}}}}`, false},
		"to be absent":                    {`{"spec":{"a":{"b":1}}}`, `{"spec":{"a":{"b":null}}}`, `{"f:spec":{"f:a":{"f:b":{}}}}`, false},
		"empty is not absent":             {`{"spec":{}}`, `{"spec":{"a":{}}}`, `{"f:spec":{"f:a":{}}}`, false},
		"atomic map":                      {`{"selector":{"a":"b"}}`, `{"selector":{"a":"b"}}`, `{"f:selector":{}}`, true},
		"atomic map with more in it":      {`{"selector":{"a":"b","c":"d"}}`, `{"selector":{"a":"b"}}`, `{"f:selector":{}}`, false},
		"atomic list":                     {`{"list":[1,2]}`, `{"list":[1,2]}`, `{"f:list":{}}`, true},
		"atomic list in another order":    {`{"list":[2,1]}`, `{"list":[1,2]}`, `{"f:list":{}}`, false},
		"atomic list with more in it":     {`{"list":[1,2,3]}`, `{"list":[1,2]}`, `{"f:list":{}}`, false},
		"associative list among others": {
			`{"list":[{"name":"other","v":9},{"name":"a","v":1,"w":2}]}`, `{"list":[{"name":"a","v":1}]}`,
			`{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:v":{}}}}`, true,
		},
		"associative list, value differs": {
			`{"list":[{"name":"a","v":2}]}`, `{"list":[{"name":"a","v":1}]}`, `{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:v":{}}}}`, false,
		},
		"associative list, element gone": {
			`{"list":[{"name":"b","v":1}]}`, `{"list":[{"name":"a","v":1}]}`, `{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:v":{}}}}`, false,
		},
		"associative list, one element is not owned": {
			`{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"a"},{"name":"b"}]}`, `{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`, false,
		},
		"associative list, another element is owned": {
			`{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"a"}]}`,
			`{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`, false,
		},
		"two keys": {
			`{"ports":[{"port":80,"protocol":"UDP","n":"x"},{"port":80,"protocol":"TCP","n":"y"}]}`, `{"ports":[{"port":80,"protocol":"TCP","n":"y"}]}`,
			`{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:n":{},"f:port":{},"f:protocol":{}}}}`, true,
		},
		"set list among others":    {`{"set":["other","a"]}`, `{"set":["a"]}`, `{"f:set":{"v:\"a\"":{}}}`, true},
		"set list, element gone":   {`{"set":["other"]}`, `{"set":["a"]}`, `{"f:set":{"v:\"a\"":{}}}`, false},
		"set list, more is owned":  {`{"set":["a","b"]}`, `{"set":["a"]}`, `{"f:set":{"v:\"a\"":{},"v:\"b\"":{}}}`, false},
		"set list, not all owned":  {`{"set":["a","b"]}`, `{"set":["a","b"]}`, `{"f:set":{"v:\"a\"":{}}}`, false},
		"list where a map was":     {`{"set":{"a":1}}`, `{"set":["a"]}`, `{"f:set":{"v:\"a\"":{}}}`, false},
		"scalar where a map was":   {`{"spec":{"a":1}}`, `{"spec":"a"}`, `{"f:spec":{"f:a":{}}}`, false},
		"large integer":            {`{"n":9007199254740993}`, `{"n":9007199254740993}`, `{"f:n":{}}`, true},
		"large integers differ":    {`{"n":9007199254740993}`, `{"n":9007199254740992}`, `{"f:n":{}}`, false},
		"fraction":                 {`{"n":0.5}`, `{"n":0.5}`, `{"f:n":{}}`, true},
		"false is not absent":      {`{}`, `{"b":false}`, `{"f:b":{}}`, false},
		"a number is not its text": {`{"n":"1"}`, `{"n":1}`, `{"f:n":{}}`, false},
	}
	for name, test := range tests {
		set := &fieldpath.Set{}
		if err := set.FromJSON(strings.NewReader(test.set)); err != nil {
			t.Fatal(err)
		}
		live, intent := object(t, test.live), object(t, test.intent)
		before := (&unstructured.Unstructured{Object: intent}).DeepCopy().Object
		if got := ownership.UpToDate(live, intent, set); got != test.want {
			t.Errorf("%s: UpToDate is %t, want %t", name, got, test.want)
		}
		if diff := cmp.Diff(before, intent); diff != "" {
			t.Errorf("%s: the intent was changed:\n%s", name, diff)
		}
	}
}

func TestChanges(t *testing.T) {
	live := &unstructured.Unstructured{Object: object(t, `{"spec":{"replicas":2,"domain":"d","list":[1],"off":3},"metadata":{"name":"n"}}`)}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		applied("stock", `{"f:spec":{"f:replicas":{},"f:domain":{}}}`), applied("oc", `{"f:spec":{"f:replicas":{}}}`),
	})
	intent := object(t, `{"metadata":{"name":"n","annotations":{"example.org/a":"b"}},"spec":{"replicas":1,"domain":"d","list":[1,2],"empty":{},"absent":{"a":true},"none":null,"off":null}}`)
	want := []ownership.Change{
		{Field: ".metadata.annotations.example.org/a", Live: "-", Desired: `"b"`, Owner: "-", Differs: true},
		{Field: ".spec.absent.a", Live: "-", Desired: "true", Owner: "-", Differs: true},
		{Field: ".spec.domain", Live: `"d"`, Desired: `"d"`, Owner: "stock"},
		{Field: ".spec.empty", Live: "-", Desired: "{}", Owner: "-", Differs: true},
		{Field: ".spec.list", Live: "[1]", Desired: "[1,2]", Owner: "-", Differs: true},
		{Field: ".spec.none", Live: "-", Desired: "-", Owner: "-"},
		{Field: ".spec.off", Live: "3", Desired: "-", Owner: "-", Differs: true},
		{Field: ".spec.replicas", Live: "2", Desired: "1", Owner: "oc,stock", Differs: true},
	}
	if diff := cmp.Diff(want, ownership.Changes(live, intent)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := ownership.Changes(live, object(t, `{"metadata":{"name":"n"}}`)); len(got) != 0 {
		t.Errorf("changes of an empty intent: %v", got)
	}
}

func ExampleChanges() {
	live := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{applied("cluster-ingress-operator", `{"f:spec":{"f:replicas":{}}}`)})
	intent := map[string]any{"spec": map[string]any{
		"replicas":      int64(1),
		"nodePlacement": map[string]any{"nodeSelector": map[string]any{"node": "master"}},
	}}
	for _, c := range ownership.Changes(live, intent) {
		fmt.Println(c.Field, c.Live, c.Desired, c.Owner)
	}
	// Output:
	// .spec.nodePlacement.nodeSelector.node - "master" -
	// .spec.replicas 2 1 cluster-ingress-operator
}
