package ingress

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// RouterPool returns the pool that the default router belongs to, and whether the topology and the default placement
// disagree. By topology it is the control plane where the infrastructure is SingleReplica (R-ING-5, R-ING-7), else the
// workers (R-ING-6). With an External control plane there are only workers (U-ING-13).
//
// Errors: topology.ErrClusterNotRead, ErrPlacement. An empty source is PlacementFromTopology.
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
