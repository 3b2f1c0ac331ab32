// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
)

// Tolerations returns the tolerations of a placement, nil for none.
func Tolerations(placement topology.Placement) []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, t := range placement.Tolerations() {
		tolerations = append(tolerations, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Effect: corev1.TaintEffect(t.Effect),
		})
	}
	return tolerations
}

// RollingUpdate returns a Deployment strategy with both numbers set (OCPBUGS-38871).
func RollingUpdate(rollout topology.Rollout) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &rollout.MaxUnavailable, MaxSurge: &rollout.MaxSurge},
	}
}

// DisruptionBudget returns the budget for pods with the labels, nil for none (R-SNO-3). It permits to evict unready
// pods.
func DisruptionBudget(namespace, name string, mode configv1.TopologyMode, labels map[string]string) *policyv1.PodDisruptionBudget {
	maxUnavailable, needed := topology.DisruptionBudget(mode)
	if !needed {
		return nil
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             &maxUnavailable,
			Selector:                   &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}
