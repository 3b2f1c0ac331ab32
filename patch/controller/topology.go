// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/topology"
)

// Infrastructure is the object that holds the topology.
var Infrastructure = Object{GroupVersionKind: configv1.GroupVersion.WithKind("Infrastructure"), Name: "cluster"}

// Topology holds the last known topology of a process. It is safe for concurrent use.
type Topology struct {
	mu      sync.Mutex
	version string // the resourceVersion that was decoded last
	known   *topology.Cluster
}

// Read returns the last valid topology, also after an error or a deletion (R-SNO-8); nil before the first.
func (t *Topology) Read(ctx context.Context, from client.Reader) (*topology.Cluster, error) {
	live := Infrastructure.Unstructured()
	err := from.Get(ctx, Infrastructure.Key(), live)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		return t.known, nil
	case err != nil:
		return t.known, fmt.Errorf("reading %s %s: %w", Infrastructure.Kind, Infrastructure.Key(), err)
	case live.GetResourceVersion() != "" && live.GetResourceVersion() == t.version:
		return t.known, nil
	}
	t.version = live.GetResourceVersion()
	log := logr.FromContextOrDiscard(ctx)
	cluster, err := topology.FromUnstructured(live)
	switch {
	case err != nil:
		log.Error(err, "Topology cannot be read, keeping the last one")
	case t.known == nil || *t.known != cluster:
		t.known = &cluster
		log.Info("Topology read", "controlPlaneTopology", cluster.ControlPlane.Mode, "infrastructureTopology", cluster.Infrastructure.Mode,
			"platform", cluster.Platform, "findings", cluster.Findings())
	}
	return t.known, nil
}
