// SPDX-License-Identifier: Apache-2.0

package decision

import (
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// Observe returns the state of the graceful shutdown. decision is that of Decide for the same inputs.
func Observe(in Inputs, decision Decision) patch.Result {
	result := decision.Result
	if result == nil {
		result, _ = Checks().Run(in)
	}
	if result != nil {
		return *result
	}
	pool, config := in.masterPool(), in.ownKubeletConfig()
	switch {
	case config != nil && refused(config):
		return patch.Result{State: patch.Failed, Reason: patch.ReasonInvalid,
			Message: "The machine-config operator refuses the KubeletConfig; see its status"}
	case pool.Spec.Paused && (decision.Restarts || !hasCondition(pool, mcfgv1.MachineConfigPoolUpdated)):
		return patch.Result{State: patch.Progressing, Reason: machineconfig.ReasonUpdatesPaused,
			Message: "The master pool is paused; its node takes the grace periods, with a restart, when the pause ends"}
	case decision.Restarts || !settled(pool):
		return patch.Result{State: patch.Progressing, Reason: patch.ReasonRollingOut,
			Message: "The node takes the grace periods, with a restart; if this does not end, see the MachineConfigPool master"}
	}
	return patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected,
		Message: "Graceful shutdown is configured on the only node" + in.Cluster.UnknownValues()}
}

func refused(config *mcfgv1.KubeletConfig) bool {
	var newest mcfgv1.KubeletConfigCondition
	for _, condition := range config.Status.Conditions {
		if !condition.LastTransitionTime.Before(&newest.LastTransitionTime) {
			newest = condition
		}
	}
	return newest.Type == mcfgv1.KubeletConfigFailure
}

// Waits returns the result for a node whose drain has to wait.
func Waits(w machineconfig.Waiting) *patch.Result {
	state := patch.Progressing
	if w.Reason == machineconfig.ReasonInvalid {
		state = patch.Failed
	}
	return &patch.Result{State: state, Reason: w.Reason, Message: w.Message, After: w.After}
}
