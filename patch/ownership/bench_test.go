package ownership

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Deployment as six managers leave it, and an intent of a dozen fields: what every look at it takes.
func BenchmarkChanges(b *testing.B) {
	live, intent := map[string]any{}, map[string]any{}
	var entries []metav1.ManagedFieldsEntry
	const managers, fields = 6, 12
	for m := range managers {
		owned := ""
		for f := range fields {
			name := fmt.Sprintf("field%d", (m+f)%fields)
			live[name], intent[name] = int64(m), int64(f)
			owned += fmt.Sprintf(`,"f:%s":{}`, name)
		}
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprintf("manager-%d", m), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{` + owned[1:] + `}}`)},
		})
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing", "spec": live}}
	object.SetManagedFields(entries)
	patch := map[string]any{"spec": intent}
	b.ReportAllocs()
	for b.Loop() {
		if got := Changes(object, patch); len(got) != fields || got[0].Owner == None {
			b.Fatalf("%+v", got)
		}
	}
}
