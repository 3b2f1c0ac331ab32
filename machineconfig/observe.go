package machineconfig

import (
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/solonode/sno/patch"
)

// Observe returns whether the node has taken the graceful shutdown, given what Decide returned for the same inputs.
func Observe(in Inputs, decision Decision) patch.Result {
	result := decision.Result
	if result == nil {
		result, _ = Checks().Run(in)
	}
	if result != nil {
		return *result
	}
	pool, config := in.masterPool(), in.ourKubeletConfig()
	switch {
	case config != nil && refused(config):
		return patch.Result{State: patch.Failed, Reason: patch.ReasonInvalid,
			Message: "The machine-config operator refuses the KubeletConfig; see its status"}
	case pool.Spec.Paused && (decision.Restarts || !is(pool, mcfgv1.MachineConfigPoolUpdated)):
		return patch.Result{State: patch.Progressing, Reason: ReasonUpdatesPaused,
			Message: "The master pool is paused; its node takes the grace periods, with a restart, when the pause ends"}
	case decision.Restarts || !atRest(pool):
		return patch.Result{State: patch.Progressing, Reason: patch.ReasonRollingOut,
			Message: "The node takes the grace periods, with a restart; if this does not end, see the MachineConfigPool master"}
	}
	return patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected,
		Message: "Graceful shutdown is configured on the only node" + in.Cluster.UnknownValues()}
}

// refused reports whether the newest condition of a KubeletConfig is a failure.
func refused(config *mcfgv1.KubeletConfig) bool {
	var newest mcfgv1.KubeletConfigCondition
	for _, condition := range config.Status.Conditions {
		if !condition.LastTransitionTime.Before(&newest.LastTransitionTime) {
			newest = condition
		}
	}
	return newest.Type == mcfgv1.KubeletConfigFailure
}
