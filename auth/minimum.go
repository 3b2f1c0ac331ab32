package auth

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

// Minimum is how many control-plane nodes the OAuth servers wait for.
type Minimum struct {
	// Nodes is the number of control-plane nodes, at least 1.
	Nodes int32
	// Override is what the deprecated override said; report its Deprecation.
	Override Override
	// Unreadable is an ErrOverride where the override cannot be read; nil otherwise. Report it: somebody wanted something there. Nodes is
	// then what the topology says.
	Unreadable error
}

// MinimumControlPlaneNodes is how many control-plane nodes must be there before the OAuth servers are expected to work (R-AUTH-1). overrides are the
// raw bytes of spec.unsupportedConfigOverrides, in which OverrideKey may be true.
//
//	control-plane topology                no override  true  unreadable
//	SingleReplica                         1            1     1
//	DualReplica, HighlyAvailableArbiter   2            2     2
//	HighlyAvailable, External             3            1     3
//
// An empty or unknown mode is HighlyAvailable. The enhancement replaces the override by the topology, so a typo in it stops no single
// node. Upstream's table is the same (U-AUTH-5); it does not report what it cannot read.
//
// Error: topology.ErrClusterNotRead.
func MinimumControlPlaneNodes(cluster topology.Cluster, overrides []byte) (Minimum, error) {
	if err := cluster.Validate(); err != nil {
		return Minimum{}, err //nolint:wrapcheck // it says what to do
	}
	override, err := ReadOverride(overrides)
	minimum := Minimum{Nodes: minimumByTopology(cluster.ControlPlane.Mode), Override: override, Unreadable: err}
	if override.Value && minimum.Nodes > 2 {
		minimum.Nodes = 1
	}
	return minimum, nil
}

func minimumByTopology(mode configv1.TopologyMode) int32 {
	switch mode {
	case configv1.SingleReplicaTopologyMode:
		return 1
	case configv1.DualReplicaTopologyMode, configv1.HighlyAvailableArbiterMode:
		return 2
	case configv1.HighlyAvailableTopologyMode, configv1.ExternalTopologyMode:
		return 3
	default:
		return 3
	}
}
