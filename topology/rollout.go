// SPDX-License-Identifier: Apache-2.0

package topology

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout holds both numbers of a rolling update: operators that compare defaults update forever (OCPBUGS-38871).
type Rollout struct{ MaxUnavailable, MaxSurge intstr.IntOrString }

// RolloutStrategy returns a rolling update that finishes with Replicas(mode) pods and SpreadRequired(mode) (R-SNO-2,
// R-OPS-1). exclusive means at most one pod per node, old or new, as with host ports.
func RolloutStrategy(mode configv1.TopologyMode, exclusive bool) Rollout {
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	switch {
	case exclusive: // the old pod must end first
		return Rollout{MaxUnavailable: one, MaxSurge: none}
	case SingleReplica(mode): // the new pod can run on the node of the old one
		return Rollout{MaxUnavailable: none, MaxSurge: one}
	default: // without a third node the surge pod is Pending until an old one ends
		return Rollout{MaxUnavailable: one, MaxSurge: one}
	}
}

// DisruptionBudget returns maxUnavailable of a budget, and whether one is needed (R-SNO-3). On SingleReplica it should
// be deleted: it would permit all evictions or block all drains.
func DisruptionBudget(mode configv1.TopologyMode) (maxUnavailable intstr.IntOrString, needed bool) {
	if SingleReplica(mode) {
		return intstr.IntOrString{}, false
	}
	return intstr.FromInt32(1), true
}
