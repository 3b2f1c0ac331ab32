package topology

import configv1 "github.com/openshift/api/config/v1"

// Pool is where pods run, by the name of the machine-config pool. Nodes of custom pools are workers too, so every value but
// ControlPlanePool is treated as WorkerPool.
type Pool string

const (
	// ControlPlanePool holds the control-plane nodes. The only control-plane node of a cluster without day-1 workers is in
	// the worker pool as well (U-TOP-5).
	ControlPlanePool Pool = "master"
	// WorkerPool holds the workers.
	WorkerPool Pool = "worker"
)

// PoolFor says in which pool pods can run that are meant for wanted: there are no control-plane nodes in a cluster with an
// External control plane, so everything runs on workers there. Place pods with PlacementOf(cluster.PoolFor(wanted)).
func (c Cluster) PoolFor(wanted Pool) Pool {
	if wanted == ControlPlanePool && effective(c.ControlPlane.Mode) != configv1.ExternalTopologyMode {
		return ControlPlanePool
	}
	return WorkerPool
}

// Governing is the topology that decides for pods in the pool (R-TOP-8): the control-plane topology for ControlPlanePool, the
// infrastructure topology for WorkerPool, and with an External control plane the infrastructure topology for both. Ask by
// where the pods will run: console, ingress and others got this wrong in both directions (U-CON-5). The
// result is one of the five modes, also for the zero Cluster.
func (c Cluster) Governing(pool Pool) configv1.TopologyMode {
	if c.PoolFor(pool) == ControlPlanePool {
		return effective(c.ControlPlane.Mode)
	}
	return effective(c.Infrastructure.Mode)
}
