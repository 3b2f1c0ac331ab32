package topology

import configv1 "github.com/openshift/api/config/v1"

// Replicas returns the number of pods of a redundant operand: 1 on SingleReplica, else 2 (R-TOP-2). Two is what every topology that is not
// SingleReplica has nodes for, DualReplica included; an operand that wants one pod per node counts nodes itself.
func Replicas(mode configv1.TopologyMode) int32 {
	if SingleReplica(mode) {
		return 1
	}
	return 2
}

// SpreadRequired reports whether the pods need required (not preferred) hostname anti-affinity; false means none at all (R-SNO-11). With
// one pod, required anti-affinity stops a surging rollout on one node (U-TOP-13), and preferred anti-affinity does
// nothing. With two it must be required: with preferred, both pods were found on one node, and its loss was an outage
// (OCPBUGS-65984).
func SpreadRequired(mode configv1.TopologyMode) bool {
	return !SingleReplica(mode)
}

// SingleReplica is the one question that every consequence asks: may there be only one of it? Empty and unknown modes are
// HighlyAvailable, so that nothing is taken away from a cluster whose mode is in doubt (R-OPS-2, R-SNO-8).
func SingleReplica(mode configv1.TopologyMode) bool {
	switch mode {
	case configv1.SingleReplicaTopologyMode:
		return true
	case configv1.HighlyAvailableTopologyMode,
		configv1.HighlyAvailableArbiterMode,
		configv1.DualReplicaTopologyMode,
		configv1.ExternalTopologyMode:
		return false
	default:
		return false
	}
}
