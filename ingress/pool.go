package ingress

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// RouterPool is the pool that the default router belongs to on this cluster, and whether the topology and the default
// placement disagree about it. The topology wants the control plane exactly where the infrastructure is SingleReplica
// (R-ING-5), and the workers elsewhere (R-ING-6). Where the only node has both roles, that is the same node (R-ING-7).
// With an External control plane there is only one pool, the workers (U-ING-13). An empty source is
// PlacementFromTopology.
//
// Errors: ErrNoTopology for a Cluster that was not read from an Infrastructure object, ErrPlacement for an unknown source.
func RouterPool(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource) (pool topology.Pool, disagree bool, err error) {
	if err := cluster.Validate(); err != nil {
		return "", false, err
	}
	if source, err = ParsePlacementSource(string(source)); err != nil {
		return "", false, err
	}
	pool, disagree = routerPool(cluster, defaultPlacement, source)
	return pool, disagree, nil
}

// routerPool is RouterPool for arguments that were checked.
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
