// SPDX-License-Identifier: Apache-2.0

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

// fakeReader returns an Infrastructure, none, or an error.
type fakeReader struct {
	client.Reader
	mode, version string
	err           error
}

func (r fakeReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
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

// A failed read, a deleted and an invalid Infrastructure keep the last topology. Only changes are logged.
func TestTopology(t *testing.T) {
	refused := errors.New("connection refused")
	logged := 0
	ctx := logr.NewContext(t.Context(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
	var known Topology
	for i, step := range []struct {
		from   fakeReader
		want   string
		err    error
		logged int
	}{
		{fakeReader{}, "", nil, 0},
		{fakeReader{err: refused}, "", refused, 0},
		{fakeReader{mode: "SingleReplica", version: "1"}, "SingleReplica", nil, 1},
		{fakeReader{mode: "SingleReplica", version: "2"}, "SingleReplica", nil, 1},
		{fakeReader{err: refused}, "SingleReplica", refused, 1},
		{fakeReader{}, "SingleReplica", nil, 1},
		{fakeReader{mode: "HighlyAvailable", version: "3"}, "HighlyAvailable", nil, 2},
		{fakeReader{mode: "not decoded, because the version is the same", version: "3"}, "HighlyAvailable", nil, 2},
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
