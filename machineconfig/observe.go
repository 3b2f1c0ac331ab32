package machineconfig

import (
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/solonode/sno/patch"
)

// Observe tells how the graceful shutdown stands, given what Decide said of the same inputs: whether the node has taken it.
func Observe(in Inputs, decision Decision) patch.Result {
	for _, result := range []*patch.Result{decision.Result, checkValid(in), checkTopologyKnown(in)} {
		if result != nil {
			return *result
		}
	}
	pool, config := in.masterPool(), in.ourKubeletConfig()
	switch {
	case config != nil && refused(config):
		return patch.Result{State: patch.Failed, Reason: ReasonInvalid,
			Message: "The machine-config operator refuses the KubeletConfig; its status says why"}
	case pool == nil:
		return *checkPoolThere(in)
	case pool.Spec.Paused && (decision.Restarts || !is(pool, mcfgv1.MachineConfigPoolUpdated)):
		return patch.Result{State: patch.Progressing, Reason: ReasonUpdatesPaused,
			Message: "The master pool is paused, so its node takes the grace periods, with a restart, when the pause ends"}
	case decision.Restarts || !atRest(pool):
		return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut,
			Message: "The node is taking the grace periods, with a restart; if this lasts, look at the MachineConfigPool master"}
	}
	return patch.Result{State: patch.InForce, Reason: ReasonAsExpected,
		Message: "The kubelet of the only node stops its pods gracefully" + in.Cluster.UnknownValues()}
}

// refused tells whether the operator's newest word on a KubeletConfig is no.
func refused(config *mcfgv1.KubeletConfig) bool {
	conditions := slices.Clone(config.Status.Conditions)
	slices.SortStableFunc(conditions, func(a, b mcfgv1.KubeletConfigCondition) int {
		return a.LastTransitionTime.Compare(b.LastTransitionTime.Time)
	})
	if len(conditions) == 0 {
		return false
	}
	return conditions[len(conditions)-1].Type == mcfgv1.KubeletConfigFailure
}
