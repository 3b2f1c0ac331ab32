package operator

import (
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// desiredStatus is the status of an IngressController with this router, which may be nil. It starts from the live status and
// keeps what others put there, conditions above all.
func desiredStatus(ic *operatorv1.IngressController, publishing *operatorv1.EndpointPublishingStrategy, router *appsv1.Deployment, now metav1.Time) operatorv1.IngressControllerStatus {
	status := *ic.Status.DeepCopy()
	status.ObservedGeneration = ic.Generation
	status.EndpointPublishingStrategy = publishing
	status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{podLabel: ic.Name}})
	status.AvailableReplicas = 0
	if router != nil {
		status.AvailableReplicas = router.Status.AvailableReplicas
	}
	status.Conditions = merge(status.Conditions, available(router), now)
	return status
}

func available(router *appsv1.Deployment) operatorv1.OperatorCondition {
	condition := operatorv1.OperatorCondition{
		Type: operatorv1.OperatorStatusTypeAvailable, Status: operatorv1.ConditionFalse,
		Reason: "DeploymentUnavailable", Message: "The router Deployment does not have its minimum number of available pods",
	}
	if router != nil && slices.ContainsFunc(router.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	}) {
		condition.Status, condition.Reason = operatorv1.ConditionTrue, "DeploymentAvailable"
		condition.Message = "The router Deployment has its minimum number of available pods"
	}
	return condition
}

// merge puts one condition among the others. Its time changes only with its status.
func merge(conditions []operatorv1.OperatorCondition, condition operatorv1.OperatorCondition, now metav1.Time) []operatorv1.OperatorCondition {
	i := slices.IndexFunc(conditions, func(c operatorv1.OperatorCondition) bool { return c.Type == condition.Type })
	if i < 0 {
		condition.LastTransitionTime = now
		return append(conditions, condition)
	}
	condition.LastTransitionTime = conditions[i].LastTransitionTime
	if conditions[i].Status != condition.Status {
		condition.LastTransitionTime = now
	}
	conditions[i] = condition
	return conditions
}
