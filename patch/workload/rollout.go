package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// RolledOut tells whether a Deployment has finished its rollout and every replica is available, which is the API's own
// definition of complete.
func RolledOut(deployment *appsv1.Deployment) bool {
	want := int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	status := deployment.Status
	return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want &&
		status.Replicas == want && status.AvailableReplicas == want
}

// RolloutStuck reports whether the progress deadline of a Deployment's newest rollout has passed without it being complete. It reads the
// Deployment controller's own verdict, so no clock is needed. A paused rollout has no deadline.
func RolloutStuck(deployment *appsv1.Deployment) bool {
	if deployment.Status.ObservedGeneration < deployment.Generation || deployment.Spec.Paused || RolledOut(deployment) {
		return false
	}
	return slices.ContainsFunc(deployment.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
	})
}
