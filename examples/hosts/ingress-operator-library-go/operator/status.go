// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	"github.com/openshift/library-go/pkg/operator/v1helpers"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// desiredStatus returns the status of an IngressController with this router. It keeps fields and conditions of others.
func desiredStatus(ic *operatorv1.IngressController, publishing *operatorv1.EndpointPublishingStrategy, router *appsv1.Deployment) operatorv1.IngressControllerStatus {
	status := *ic.Status.DeepCopy()
	status.ObservedGeneration = ic.Generation
	status.EndpointPublishingStrategy = publishing
	status.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: podLabels(ic.Name)})
	status.AvailableReplicas = router.Status.AvailableReplicas

	available := operatorv1.OperatorCondition{
		Type: operatorv1.OperatorStatusTypeAvailable, Status: operatorv1.ConditionFalse,
		Reason: "DeploymentUnavailable", Message: "The router Deployment does not have its minimum number of available pods",
	}
	if slices.ContainsFunc(router.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	}) {
		available.Status, available.Reason = operatorv1.ConditionTrue, "DeploymentAvailable"
		available.Message = "The router Deployment has its minimum number of available pods"
	}
	v1helpers.SetOperatorCondition(&status.Conditions, available)
	return status
}
