// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// ErrPlacement is returned for an unknown placement source.
var ErrPlacement = errors.New("unknown placement source")

// PlacementSource is the signal that decides where the router belongs: the infrastructure topology (R-ING-5), or
// status.defaultPlacement of ingresses.config.openshift.io/cluster, as in OpenShift (U-TOP-7).
type PlacementSource string

const (
	// PlacementFromTopology pins if the infrastructure topology is SingleReplica.
	PlacementFromTopology PlacementSource = "topology"
	// PlacementFromDefaultPlacement pins if defaultPlacement is ControlPlane. If it is empty, the topology decides.
	PlacementFromDefaultPlacement PlacementSource = "defaultPlacement"
)

// ParsePlacementSource parses a flag's value; the empty string is PlacementFromTopology. Error: ErrPlacement.
func ParsePlacementSource(text string) (PlacementSource, error) {
	switch source := PlacementSource(text); source {
	case "":
		return PlacementFromTopology, nil
	case PlacementFromTopology, PlacementFromDefaultPlacement:
		return source, nil
	}
	return "", fmt.Errorf("%w: %q; want %q or %q", ErrPlacement, text, PlacementFromTopology, PlacementFromDefaultPlacement)
}

// RouterPool returns the pool of the default router (R-ING-5, R-ING-6, R-ING-7; workers where the control plane is
// External, U-ING-13), and whether the topology and the default placement disagree. An empty source is
// PlacementFromTopology. Errors: topology.ErrClusterNotRead, ErrPlacement.
func RouterPool(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource) (topology.Pool, bool, error) {
	if err := cluster.Validate(); err != nil {
		return "", false, err
	}
	source, err := ParsePlacementSource(string(source))
	if err != nil {
		return "", false, err
	}
	pool, disagree := routerPool(cluster, defaultPlacement, source)
	return pool, disagree, nil
}

func routerPool(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource) (pool topology.Pool, disagree bool) {
	byTopology := topology.WorkerPool
	if topology.SingleReplica(cluster.Infrastructure.Mode) {
		byTopology = topology.ControlPlanePool
	}
	byDefault := byTopology
	switch defaultPlacement {
	case configv1.DefaultPlacementControlPlane:
		byDefault = topology.ControlPlanePool
	case configv1.DefaultPlacementWorkers:
		byDefault = topology.WorkerPool
	}
	pool = byTopology
	if source == PlacementFromDefaultPlacement {
		pool = byDefault
	}
	return cluster.PoolFor(pool), byTopology != byDefault
}
