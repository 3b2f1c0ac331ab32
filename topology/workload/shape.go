// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// Roll sets replicas and the rolling update. A rolling update that has the same effect on that many replicas stays:
// for one, 25% and 25% are 0 and 1.
func Roll(deployment *appsv1.Deployment, replicas int32, rollout topology.Rollout) {
	deployment.Spec.Replicas = &replicas
	wanted := RollingUpdate(rollout)
	unavailable, surge, ok := Steps(deployment.Spec.Strategy, replicas)
	if wantUnavailable, wantSurge, _ := Steps(wanted, replicas); !ok || unavailable != wantUnavailable || surge != wantSurge {
		deployment.Spec.Strategy = wanted
	}
}

// Steps returns how many pods of a rolling update may be unavailable or surplus at a time, rounded as the Deployment
// controller rounds them, and false for another strategy or an unset number.
func Steps(strategy appsv1.DeploymentStrategy, replicas int32) (unavailable, surge int, ok bool) {
	update := strategy.RollingUpdate
	if strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || update == nil || update.MaxUnavailable == nil || update.MaxSurge == nil {
		return 0, 0, false
	}
	unavailable, badUnavailable := intstr.GetScaledValueFromIntOrPercent(update.MaxUnavailable, int(replicas), false)
	surge, badSurge := intstr.GetScaledValueFromIntOrPercent(update.MaxSurge, int(replicas), true)
	if badUnavailable != nil || badSurge != nil {
		return 0, 0, false
	}
	if unavailable == 0 && surge == 0 {
		unavailable = 1 // or the rollout could not proceed
	}
	return min(unavailable, int(replicas)), surge, true
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
