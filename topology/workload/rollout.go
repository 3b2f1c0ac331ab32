// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
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
