package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/patch/ownership"
)

// On an object without managedFields, which an old client or a restore can leave, every value is somebody's.
func TestOthersOfUnsigned(t *testing.T) {
	got, err := ownership.Others(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}, ".spec.replicas", "us")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{ownership.BeforeFirstApply}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
