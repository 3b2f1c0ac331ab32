// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch"
)

// RolledOut reports whether a Deployment is complete, as the API defines it.
func RolledOut(deployment *appsv1.Deployment) bool {
	want := ptr.Deref(deployment.Spec.Replicas, 1)
	status := deployment.Status
	return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want &&
		status.Replicas == want && status.AvailableReplicas == want
}

// RolloutStuck reports whether the newest rollout is not complete after its progress deadline.
func RolloutStuck(deployment *appsv1.Deployment) bool {
	if deployment.Status.ObservedGeneration < deployment.Generation || deployment.Spec.Paused || RolledOut(deployment) {
		return false
	}
	return slices.ContainsFunc(deployment.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
	})
}

// Health returns the result for a Deployment of any shape, InForce, Progressing, or Failed after the progress deadline.
func Health(subject string, deployment *appsv1.Deployment) patch.Result {
	available := deployment.Status.AvailableReplicas > 0
	result := func(state patch.State, reason, message string, args ...any) patch.Result {
		return patch.Result{State: state, Reason: reason, Message: fmt.Sprintf(message, append([]any{subject}, args...)...)}
	}
	switch {
	case RolledOut(deployment):
		return result(patch.InForce, patch.ReasonAsExpected, "All pods of the %s are available")
	case RolloutStuck(deployment):
		pods := " and no pod is available"
		if available {
			pods = ", other pods still serve"
		}
		return result(patch.Failed, patch.ReasonRolloutStuck, "The rollout of the %s does not finish%s; look at the events and logs of its pods", pods)
	case deployment.Spec.Paused:
		return result(patch.Progressing, patch.ReasonRollingOut, "The rollout of the %s is paused; resume it with oc rollout resume")
	}
	pods := ", no pod is available yet"
	if available {
		pods = " while available"
	}
	return result(patch.Progressing, patch.ReasonRollingOut,
		"The %s is rolling out%s; if pods stay Pending or crash, look at their events and logs", pods)
}
