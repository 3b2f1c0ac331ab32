package machineconfig

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
)

// ErrMaxUnavailable is returned for a pool whose spec.maxUnavailable says nothing.
var ErrMaxUnavailable = errors.New("unreadable maxUnavailable")

// ExpectedControlPlaneNodes returns how many nodes with the master role, and how many with the arbiter role, a cluster of this control-plane
// topology has when it is whole. It takes the place of a fixed three (R-MCO-1): with SingleReplica one, with DualReplica two, with
// HighlyAvailableArbiter two and an arbiter, with External none, because the control plane is elsewhere. Empty and unknown modes count as
// HighlyAvailable: three, the least that survives the loss of one (U-TOP-1, U-TOP-8).
//
// Error: topology.ErrClusterNotRead.
func ExpectedControlPlaneNodes(cluster topology.Cluster) (masters, arbiters int, err error) {
	if err := cluster.Validate(); err != nil {
		return 0, 0, err //nolint:wrapcheck // it says what to do
	}
	masters, arbiters = expected(cluster.ControlPlane.Mode)
	return masters, arbiters, nil
}

func expected(mode configv1.TopologyMode) (masters, arbiters int) {
	switch topology.ReadingOf(mode).Mode {
	case configv1.SingleReplicaTopologyMode:
		return 1, 0
	case configv1.DualReplicaTopologyMode:
		return 2, 0
	case configv1.HighlyAvailableArbiterMode:
		return 2, 1
	case configv1.ExternalTopologyMode:
		return 0, 0
	case configv1.HighlyAvailableTopologyMode:
		return 3, 0
	}
	return 3, 0
}

// MaxUnavailable returns how many of the nodes of a pool may be away at once. nodes is how many nodes PoolOf puts into the pool; for the
// master and the arbiter pool of a cluster with an arbiter, how many are in either, with those that ExpectedControlPlaneNodes misses.
//
// An unset spec.maxUnavailable is 1. A percentage is of the nodes, rounded down. What comes to 0 is 1, because the API says so, and
// because one node must be able to update (U-MCO-5; an old formula of the machine-config operator gave 0, U-MCO-4). It is
// never more than there are nodes, but for a pool without nodes.
//
// Of control-plane nodes never so many go that the others are no majority, whatever the pool says. One and two nodes are the
// exception: one of them may go. A majority of two is both, and with that no such cluster could ever be updated.
//
// Errors: ErrMaxUnavailable, and ErrInputs for no pool or a negative number of nodes.
func MaxUnavailable(pool *mcfgv1.MachineConfigPool, nodes int) (int, error) {
	switch {
	case pool == nil:
		return 0, fmt.Errorf("%w: no MachineConfigPool", ErrInputs)
	case nodes < 0:
		return 0, fmt.Errorf("%w: MachineConfigPool %s has %d nodes", ErrInputs, pool.Name, nodes)
	}
	most := 1
	if said := pool.Spec.MaxUnavailable; said != nil {
		scaled, err := intstr.GetScaledValueFromIntOrPercent(said, nodes, false)
		if err == nil && scaled < 0 {
			err = errors.New("it is negative")
		}
		if err != nil {
			return 0, fmt.Errorf("%w: MachineConfigPool %s: spec.maxUnavailable is %q, want a number or a percentage: %w", ErrMaxUnavailable, pool.Name, said.String(), err)
		}
		most = scaled
	}
	if pool.Name == MasterPool || pool.Name == ArbiterPool {
		most = min(most, (nodes-1)/2)
	}
	return max(1, min(most, nodes)), nil
}
