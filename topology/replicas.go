// SPDX-License-Identifier: Apache-2.0

package topology

import configv1 "github.com/openshift/api/config/v1"

// Replicas returns the number of pods of a redundant operand: 1 on SingleReplica, else 2 (R-TOP-2).
func Replicas(mode configv1.TopologyMode) int32 {
	if SingleReplica(mode) {
		return 1
	}
	return 2
}

// SpreadRequired reports whether pods need required hostname anti-affinity, or none (R-SNO-11). With one pod it blocks
// a surge on one node (U-TOP-13); with two, preferred anti-affinity is not enough (OCPBUGS-65984).
func SpreadRequired(mode configv1.TopologyMode) bool {
	return !SingleReplica(mode)
}

// SingleReplica reports whether operands have one replica. Unknown modes are HighlyAvailable (R-OPS-2, R-SNO-8).
func SingleReplica(mode configv1.TopologyMode) bool {
	return mode == configv1.SingleReplicaTopologyMode
}
