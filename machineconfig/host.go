package machineconfig

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
)

// ErrMaxUnavailable is returned for a pool whose spec.maxUnavailable says nothing.
var ErrMaxUnavailable = errors.New("unreadable maxUnavailable")

// ExpectedControlPlaneNodes is how many nodes with the master role, and how many with the arbiter role, a cluster of this control-plane
// topology has when it is whole. It takes the place of a fixed three (seed 004): with SingleReplica one, with DualReplica two, with
// HighlyAvailableArbiter two and an arbiter, with External none, because the control plane is elsewhere. Empty and unknown modes count as
// HighlyAvailable: three, the least that survives the loss of one (openshift/api, TopologyMode; facts/upstream.md sections 2.1 and 9).
func ExpectedControlPlaneNodes(mode configv1.TopologyMode) (masters, arbiters int) {
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

// MaxUnavailable is how many of the nodes of a pool may be away at once. nodes are all nodes of the pool; for the master and the
// arbiter pool of a cluster with an arbiter, those of both.
//
// An unset spec.maxUnavailable is 1. A percentage is of the nodes, rounded down. What comes to 0 is 1, because the API says so, and
// because one node must be able to update (an old formula of the machine-config operator gave 0, facts/upstream.md section 3.2). It is
// never more than there are nodes.
//
// Of control-plane nodes never so many go that the others are no majority, whatever the pool says. One and two nodes are the
// exception: one of them may go. A majority of two is both, and with that no such cluster could ever be updated.
//
// Errors: ErrMaxUnavailable.
func MaxUnavailable(pool *mcfgv1.MachineConfigPool, nodes ...corev1.Node) (int, error) {
	return maxUnavailable(pool, len(nodes))
}

func maxUnavailable(pool *mcfgv1.MachineConfigPool, nodes int) (int, error) {
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
