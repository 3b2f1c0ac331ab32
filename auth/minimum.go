package auth

import (
	configv1 "github.com/openshift/api/config/v1"
)

// Minimum is how many control-plane nodes the OAuth servers wait for.
type Minimum struct {
	// Nodes is the number of control-plane nodes, at least 1.
	Nodes int32
	// Override is what the deprecated override said; report its Deprecation.
	Override Override
}

// MinimumControlPlaneNodes is how many control-plane nodes must be there before the OAuth servers are expected to work, by the
// control-plane topology: 1 on SingleReplica, 2 on DualReplica and HighlyAvailableArbiter, 3 on HighlyAvailable and External,
// and on a mode that is empty or unknown. overrides are the raw bytes of spec.unsupportedConfigOverrides: where OverrideKey is
// true in them, the minimum is 1 in every mode.
//
// Seed 004 replaces the override by the topology. Upstream's table is the same, but takes 3 where the override cannot be read
// (facts/upstream.md section 5); here that is an ErrOverride in every mode, and no Minimum.
func MinimumControlPlaneNodes(mode configv1.TopologyMode, overrides []byte) (Minimum, error) {
	override, err := ReadOverride(overrides)
	if err != nil {
		return Minimum{}, err
	}
	if override.Value {
		return Minimum{Nodes: 1, Override: override}, nil
	}
	return Minimum{Nodes: minimumByTopology(mode), Override: override}, nil
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
