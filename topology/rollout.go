package topology

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout holds the two numbers of a Deployment's rolling update, in pods. Set both, or the API server's defaults make an operator that
// compares them update for ever (OCPBUGS-38871).
type Rollout struct{ MaxUnavailable, MaxSurge intstr.IntOrString }

// RolloutStrategy returns a rolling update that can finish with Replicas(mode) pods and SpreadRequired(mode) (R-SNO-2, R-OPS-1).
// exclusive means that a node can hold at most one such pod, old or new: host ports, or a single writer per node.
func RolloutStrategy(mode configv1.TopologyMode, exclusive bool) Rollout {
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	switch {
	case exclusive: // the old pod must end before the new one can run on its node
		return Rollout{MaxUnavailable: one, MaxSurge: none}
	case SingleReplica(mode): // nothing keeps the new pod from the old pod's node
		return Rollout{MaxUnavailable: none, MaxSurge: one}
	default: // without a third node the surge pod is Pending until an old pod ends
		return Rollout{MaxUnavailable: one, MaxSurge: one}
	}
}

// DisruptionBudget returns maxUnavailable, in pods, of a PodDisruptionBudget, and whether one is needed (R-SNO-3). On SingleReplica none
// is, and one that exists should be deleted: it would allow every eviction or block every drain.
func DisruptionBudget(mode configv1.TopologyMode) (maxUnavailable intstr.IntOrString, needed bool) {
	if SingleReplica(mode) {
		return intstr.IntOrString{}, false
	}
	return intstr.FromInt32(1), true
}
