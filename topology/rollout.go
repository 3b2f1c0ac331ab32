package topology

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout holds the two numbers of a Deployment's rolling update, in pods. Both are always meant to be set: percentages
// round differently with the number of replicas, and fields left out come back with the API server's defaults, which makes
// a comparing operator update for ever (OCPBUGS-38871).
type Rollout struct {
	MaxUnavailable, MaxSurge intstr.IntOrString
}

// RolloutStrategy is a rolling update that can finish with Replicas(mode) pods, spread as SpreadRequired(mode) says (R-SNO-2, R-OPS-1).
// exclusive means that a node can hold at most one such pod, old or new: host ports, or a single writer per node.
//
//	mode           exclusive  maxUnavailable  maxSurge
//	SingleReplica  no         0               1   the new pod starts beside the old one; nothing keeps them apart
//	SingleReplica  yes        1               0   the old pod must go first, or the new one never finds its port free
//	all others     no         1               1   see below
//	all others     yes        1               0   one pod at a time leaves its node, its successor takes that node
//
// On all others there may be no third node, and with required anti-affinity the surge pod then stays Pending. What ends the
// rollout is maxUnavailable 1: an old pod may go although no new one is ready, and the Pending pod takes its node. With
// maxUnavailable 0 it would wait for ever. With three nodes or more the surge pod simply starts.
//
// This needs two nodes that take the two pods. With only one of them, maxUnavailable 1 is used up by the pod that never
// started, and a rollout waits for the second node; Decide documents the one install that gets there.
func RolloutStrategy(mode configv1.TopologyMode, exclusive bool) Rollout {
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	switch {
	case exclusive:
		return Rollout{MaxUnavailable: one, MaxSurge: none}
	case SingleReplica(mode):
		return Rollout{MaxUnavailable: none, MaxSurge: one}
	default:
		return Rollout{MaxUnavailable: one, MaxSurge: one}
	}
}

// DisruptionBudget is maxUnavailable, in pods, of a PodDisruptionBudget, and whether there should be one at all (R-SNO-3). There is
// none on SingleReplica: a budget over one pod either allows every eviction, and says nothing, or blocks every drain. needed
// false therefore also means that a budget which exists should be deleted; maxUnavailable is then meaningless. Elsewhere it
// is 1: with two pods minAvailable 1 would allow the same, but would block once somebody scales down to one.
func DisruptionBudget(mode configv1.TopologyMode) (maxUnavailable intstr.IntOrString, needed bool) {
	if SingleReplica(mode) {
		return intstr.IntOrString{}, false
	}
	return intstr.FromInt32(1), true
}
