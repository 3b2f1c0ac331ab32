package ingress

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// RouterPool is the pool that the default router belongs to on this cluster, and whether the topology and the default
// placement disagree about it. With an External control plane there is only one pool, the workers.
func RouterPool(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource) (pool topology.Pool, disagree bool) {
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
