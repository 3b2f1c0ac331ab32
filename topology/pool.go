// SPDX-License-Identifier: Apache-2.0

package topology

import configv1 "github.com/openshift/api/config/v1"

// Pool is the machine-config pool of nodes. All values but ControlPlanePool are treated as WorkerPool.
type Pool string

// The pools. The only control-plane node of a cluster without day-1 workers is in both (U-TOP-5).
const (
	ControlPlanePool Pool = "master"
	WorkerPool       Pool = "worker"
)

// PoolFor returns the pool for pods: with an External control plane that is always WorkerPool.
func (c Cluster) PoolFor(wanted Pool) Pool {
	if wanted == ControlPlanePool && effective(c.ControlPlane.Mode) != configv1.ExternalTopologyMode {
		return ControlPlanePool
	}
	return WorkerPool
}

// Governing returns the topology that applies to pods in the pool (R-TOP-8, U-CON-5): the control-plane topology for
// ControlPlanePool, the infrastructure topology for WorkerPool and with an External control plane.
func (c Cluster) Governing(pool Pool) configv1.TopologyMode {
	if c.PoolFor(pool) == ControlPlanePool {
		return effective(c.ControlPlane.Mode)
	}
	return effective(c.Infrastructure.Mode)
}
