package mustgather

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestGathered(t *testing.T) {
	object := &fstest.MapFile{Data: []byte("{}")}
	tree, err := Open(fstest.MapFS{
		"image/cluster-scoped-resources/core/nodes/m.yaml": object,
		"image/namespaces/b/core/pods/p.yaml":              object,
		"other/namespaces/a/apps/deployments.yaml":         object,
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, tree.Namespaces()); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		group, resource, namespace string
		want                       bool
	}{
		{"", "nodes", "", true}, {"", "pods", "b", true}, {"apps", "deployments", "a", true},
		{"", "pods", "a", false}, {"apps", "deployments", "", false}, {"", "nodes", "b", false},
	} {
		if got := tree.Gathered(schema.GroupResource{Group: test.group, Resource: test.resource}, test.namespace); got != test.want {
			t.Errorf("%v: %t", test, got)
		}
	}
	pods := schema.GroupResource{Resource: "pods"}
	if got := tree.Path(pods, "b", "p"); got != "image/namespaces/b/core/pods/p.yaml" {
		t.Errorf("path of one: %s", got)
	}
	if got := tree.Path(pods, "b", ""); got != "image/namespaces/b/core/pods.yaml" {
		t.Errorf("path of all: %s", got)
	}
}
