package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// one is a reader of one Infrastructure, or of none, or with an error.
type one struct {
	client.Reader
	mode, version string
	err           error
}

func (r one) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch {
	case r.err != nil:
		return r.err
	case r.version == "":
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	into.SetResourceVersion(r.version)
	return unstructured.SetNestedMap(into.(*unstructured.Unstructured).Object, map[string]any{
		"controlPlaneTopology": r.mode, "infrastructureTopology": "SingleReplica", "platform": "None",
	}, "status")
}

// A failed read, a deleted Infrastructure and an invalid one keep the last topology, and only a change is logged.
func TestTopology(t *testing.T) {
	refused := errors.New("connection refused")
	logged := 0
	ctx := logr.NewContext(t.Context(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
	var known Topology
	for i, step := range []struct {
		from   one
		want   string
		err    error
		logged int
	}{
		{one{}, "", nil, 0},
		{one{err: refused}, "", refused, 0},
		{one{mode: "SingleReplica", version: "1"}, "SingleReplica", nil, 1},
		{one{mode: "SingleReplica", version: "2"}, "SingleReplica", nil, 1},
		{one{err: refused}, "SingleReplica", refused, 1},
		{one{}, "SingleReplica", nil, 1},
		{one{mode: "HighlyAvailable", version: "3"}, "HighlyAvailable", nil, 2},
		{one{mode: "not decoded, because the version is the same", version: "3"}, "HighlyAvailable", nil, 2},
	} {
		cluster, err := known.Read(ctx, step.from)
		got := ""
		if cluster != nil {
			got = string(cluster.ControlPlane.Mode)
		}
		if got != step.want || !errors.Is(err, step.err) || logged != step.logged {
			t.Errorf("step %d: %q, %v, logged %d times; want %q, %v, %d", i, got, err, logged, step.want, step.err, step.logged)
		}
	}
}
