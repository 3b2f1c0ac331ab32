// SPDX-License-Identifier: Apache-2.0

package decision

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/patch"
)

// reportStuck reports a stuck rollout of a Deployment that another client manages.
func reportStuck(o target, step patch.Step) patch.Step {
	if step.Release && (step.Result.Reason == patch.ReasonFieldOwnedByOther || *step.Result == shapedByOperator) {
		step.Result = o.RolloutStuckOr(step.Result)
	}
	return step
}

// reportDrain reports a budget that blocks the drain of the only pod.
func reportDrain(o target, step patch.Step) patch.Step {
	if step.Intent != nil && step.Result.State < patch.Blocked && blocksDrain(o.budget) {
		step.Result = &patch.Result{State: patch.Blocked, Reason: ReasonDrainBlocked,
			Message: "A PodDisruptionBudget does not allow evicting the only pod, so the node cannot be drained; delete it, or set its maxUnavailable to 1"}
	}
	return step
}

// blocksDrain reports whether a budget allows no eviction of a single replica.
func blocksDrain(budget *policyv1.PodDisruptionBudget) bool {
	if budget == nil {
		return false
	}
	if most := budget.Spec.MaxUnavailable; most != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(most, 1, true)
		return err == nil && n < 1
	}
	if least := budget.Spec.MinAvailable; least != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(least, 1, true)
		return err == nil && n > 0
	}
	return false
}
