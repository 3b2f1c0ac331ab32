// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
)

// ErrMaxUnavailable is returned for a spec.maxUnavailable that is neither a number nor a percentage.
var ErrMaxUnavailable = errors.New("unreadable maxUnavailable")

// ExpectedControlPlaneNodes returns how many nodes with the master and the arbiter role a complete cluster of the
// topology has (R-MCO-1). Empty and unknown modes count as HighlyAvailable (U-TOP-1, U-TOP-8). The error is
// topology.ErrClusterNotRead.
func ExpectedControlPlaneNodes(cluster topology.Cluster) (masters, arbiters int, err error) {
	if err := cluster.Validate(); err != nil {
		return 0, 0, err //nolint:wrapcheck // it describes the remedy
	}
	switch topology.ReadingOf(cluster.ControlPlane.Mode).Mode {
	case configv1.SingleReplicaTopologyMode:
		return 1, 0, nil
	case configv1.DualReplicaTopologyMode:
		return 2, 0, nil
	case configv1.HighlyAvailableArbiterMode:
		return 2, 1, nil
	case configv1.ExternalTopologyMode:
		return 0, 0, nil
	case configv1.HighlyAvailableTopologyMode:
	}
	return 3, 0, nil
}

// MaxUnavailable returns how many of a pool's nodes may be unavailable at once, at least 1 (U-MCO-5). nodes is the size
// of the pool; for master and arbiter that of both. The default is 1; a percentage is rounded down. Errors:
// ErrMaxUnavailable, ErrInputs.
func MaxUnavailable(pool *mcfgv1.MachineConfigPool, nodes int) (int, error) {
	switch {
	case pool == nil:
		return 0, fmt.Errorf("%w: no MachineConfigPool", ErrInputs)
	case nodes < 0:
		return 0, fmt.Errorf("%w: MachineConfigPool %s has %d nodes", ErrInputs, pool.Name, nodes)
	}
	limit := 1
	if value := pool.Spec.MaxUnavailable; value != nil {
		scaled, err := intstr.GetScaledValueFromIntOrPercent(value, nodes, false)
		if err == nil && scaled < 0 {
			err = errors.New("it is negative")
		}
		if err != nil {
			return 0, fmt.Errorf("%w: MachineConfigPool %s: spec.maxUnavailable is %q, want a number or a percentage: %w",
				ErrMaxUnavailable, pool.Name, value.String(), err)
		}
		limit = scaled
	}
	if pool.Name == MasterPool || pool.Name == ArbiterPool {
		// A majority of the control plane stays, except that one of one or two nodes may be unavailable.
		limit = min(limit, (nodes-1)/2)
	}
	// At least 1, so that one node can update: an old formula gave 0 (U-MCO-4).
	return max(1, min(limit, nodes)), nil
}
