// SPDX-License-Identifier: Apache-2.0

package versionoperator

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/scenario"
)

// Guard and GuardBudget are the quorum guard of etcd of releases before 4.8: three pods on control-plane nodes, of
// which one may be evicted, whatever the topology is.
var (
	Guard = manifest("Deployment", appsv1.GroupName, guard, func(live, want *appsv1.Deployment) {
		live.Annotations = annotated(live.Annotations)
		live.Spec.Replicas, live.Spec.Strategy = want.Spec.Replicas, want.Spec.Strategy
		pod, wanted := &live.Spec.Template.Spec, want.Spec.Template.Spec
		pod.NodeSelector, pod.Affinity, pod.Tolerations, pod.HostNetwork = wanted.NodeSelector, wanted.Affinity, wanted.Tolerations, true
	})
	GuardBudget = manifest("PodDisruptionBudget", policyv1.GroupName, guardBudget, func(live, want *policyv1.PodDisruptionBudget) {
		live.Annotations = annotated(live.Annotations)
		live.Spec = want.Spec // the operator has no code for this kind, and replaces the whole spec (U-ETC-5)
	})
)

var guardKey = client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: "etcd-quorum-guard"}

const includeAnnotation = "include.release.openshift.io/self-managed-high-availability"

func annotated(annotations map[string]string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[includeAnnotation] = "true"
	return annotations
}

func guard() *appsv1.Deployment {
	labels := func() map[string]string { return map[string]string{"k8s-app": guardKey.Name} }
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: guardKey.Namespace, Name: guardKey.Name, Annotations: annotated(nil)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0)),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels()},
				Spec: corev1.PodSpec{
					HostNetwork:  true,
					NodeSelector: map[string]string{scenario.MasterTaint: ""},
					Tolerations:  []corev1.Toleration{{Key: scenario.MasterTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
							LabelSelector: &metav1.LabelSelector{MatchLabels: labels()}, TopologyKey: corev1.LabelHostname,
						}},
					}},
					Containers: []corev1.Container{{
						Name: "guard", Image: "cli:1", Command: []string{"/bin/bash", "-c", "sleep infinity"},
						ReadinessProbe: &corev1.Probe{
							ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"curl", "https://localhost:2379/health"}}},
							PeriodSeconds: 5, TimeoutSeconds: 3,
						},
					}},
				},
			},
		},
	}
}

func guardBudget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: guardKey.Namespace, Name: guardKey.Name, Annotations: annotated(nil)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": guardKey.Name}},
		},
	}
}
