// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func onDeployment(namespace, name string, change func(*appsv1.Deployment)) func(*Input) bool {
	return func(in *Input) bool {
		d := in.State.Deployment(namespace, name)
		if d == nil {
			return false
		}
		change(d)
		return true
	}
}

func setReplicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(n) }
}

func annotate(d *appsv1.Deployment) {
	d.Annotations = map[string]string{"example.com/reviewed": "yes"}
	d.Spec.Template.Annotations = map[string]string{"example.com/reviewed": "yes"}
}

// deadlock makes a rollout on one node that cannot end: the old pod may not be removed first, and the new one may not
// run on the same node.
func deadlock(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
	}}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: d.Spec.Selector, TopologyKey: hostnameLabel}},
	}}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func recreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func forbidEvictions(namespace, name string) func(*Input) bool {
	return budgetOver(namespace, name, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))})
}

func budgetOver(namespace, name string, spec policyv1.PodDisruptionBudgetSpec) func(*Input) bool {
	return func(in *Input) bool {
		d := in.State.Deployment(namespace, name)
		if d == nil {
			return false
		}
		in.State.Budgets = slices.DeleteFunc(in.State.Budgets, func(budget policyv1.PodDisruptionBudget) bool { return covers(&budget, d) })
		spec.Selector = d.Spec.Selector.DeepCopy()
		in.State.Budgets = append(in.State.Budgets, policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-control"}, Spec: *spec.DeepCopy(),
		})
		return true
	}
}

const extraNode = "extra-node"

func addExtraNode(in *Input) {
	in.State.Nodes = append(in.State.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: extraNode, Labels: map[string]string{workerRole: ""}}})
}

func newDeployment(namespace, name string, n int32) appsv1.Deployment {
	labels := map[string]string{"app": name}
	return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}},
		},
	}}
}
