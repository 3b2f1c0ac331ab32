// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

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
