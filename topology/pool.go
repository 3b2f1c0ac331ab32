package topology

import configv1 "github.com/openshift/api/config/v1"

// Pool is the machine-config pool of the nodes where pods run. Every value but ControlPlanePool is treated as WorkerPool.
type Pool string

// The pools. The only control-plane node of a cluster without day-1 workers is in both (U-TOP-5).
const (
	ControlPlanePool Pool = "master"
	WorkerPool       Pool = "worker"
)

// PoolFor returns the pool where pods that are meant for wanted can run: with an External control plane everything runs on workers.
func (c Cluster) PoolFor(wanted Pool) Pool {
	if wanted == ControlPlanePool && effective(c.ControlPlane.Mode) != configv1.ExternalTopologyMode {
		return ControlPlanePool
	}
	return WorkerPool
}

// Governing returns the topology that decides for pods in the pool (R-TOP-8): the control-plane topology for ControlPlanePool, the
// infrastructure topology for WorkerPool, and with an External control plane the infrastructure topology for both. Stock operators got
// this wrong in both directions (U-CON-5).
func (c Cluster) Governing(pool Pool) configv1.TopologyMode {
	if c.PoolFor(pool) == ControlPlanePool {
		return effective(c.ControlPlane.Mode)
	}
	return effective(c.Infrastructure.Mode)
}
