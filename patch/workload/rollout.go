package workload

import appsv1 "k8s.io/api/apps/v1"

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
