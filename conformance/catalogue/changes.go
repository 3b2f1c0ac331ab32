// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Changes that several controls make.

func onDeployment(w types.NamespacedName, change func(*appsv1.Deployment)) func(*Input) bool {
	return func(in *Input) bool {
		d := in.State.Deployment(w.Namespace, w.Name)
		if d == nil {
			return false
		}
		change(d)
		return true
	}
}

// onState is a change that every cluster allows.
func onState(change func(*State)) func(*Input) bool {
	return func(in *Input) bool { change(in.State); return true }
}

// annotated is the positive control of checks of a Deployment.
func annotated(name string, w types.NamespacedName) Control {
	return Control{Name: name, MustPass: true, Change: onDeployment(w, func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"example.com/reviewed": "yes"}
		d.Spec.Template.Annotations = map[string]string{"example.com/reviewed": "yes"}
	})}
}

func setReplicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(n) }
}

func setNodeSelector(role string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{role: ""} }
}

func recreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func rolling(unavailable, surge intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: &unavailable, MaxSurge: &surge,
	}}
}

// deadlock makes a rollout on one node that cannot end: the old pod may not be removed first, and the new one may not
// run on the same node.
func deadlock(d *appsv1.Deployment) {
	d.Spec.Strategy = rolling(intstr.FromInt32(0), intstr.FromInt32(1))
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: d.Spec.Selector, TopologyKey: corev1.LabelHostname}},
	}}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func keepOffControlPlane(d *appsv1.Deployment) {
	d.Spec.Template.Spec.NodeSelector = nil
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: masterRole, Operator: corev1.NodeSelectorOpDoesNotExist}},
		}}},
	}}
}

func removeSeparation(d *appsv1.Deployment) {
	pod := &d.Spec.Template.Spec
	pod.Affinity, pod.HostNetwork = nil, false
	for i := range pod.Containers {
		for j := range pod.Containers[i].Ports {
			pod.Containers[i].Ports[j].HostPort = 0
		}
	}
}

func writtenByVersion(d *appsv1.Deployment) {
	d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: versionManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1", Time: ptr.To(metav1.Now()),
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:replicas":{}}}`)},
	})
}

// budgetOver replaces the budgets of a Deployment.
func budgetOver(w types.NamespacedName, spec policyv1.PodDisruptionBudgetSpec) func(*Input) bool {
	return func(in *Input) bool {
		d := in.State.Deployment(w.Namespace, w.Name)
		if d == nil {
			return false
		}
		in.State.Budgets = slices.DeleteFunc(in.State.Budgets, func(budget policyv1.PodDisruptionBudget) bool { return Covers(&budget, d) })
		spec.Selector = d.Spec.Selector.DeepCopy()
		in.State.Budgets = append(in.State.Budgets, policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-control"}, Spec: *spec.DeepCopy(),
		})
		return true
	}
}

func onPods(w types.NamespacedName, change func(*State, *corev1.Pod)) func(*Input) bool {
	return func(in *Input) bool {
		d := in.State.Deployment(w.Namespace, w.Name)
		if d == nil || len(in.State.PodsOf(d)) == 0 {
			return false
		}
		for i := range in.State.Pods {
			if pod := &in.State.Pods[i]; pod.Namespace == w.Namespace && selects(d.Spec.Selector, pod.Labels) {
				change(in.State, pod)
			}
		}
		return true
	}
}

func movePodsToOneNode(w types.NamespacedName) func(*Input) bool {
	return onPods(w, func(s *State, pod *corev1.Pod) { pod.Spec.NodeName = s.Nodes[0].Name })
}

const extraNode = "extra-node"

func addWorker(s *State) {
	s.Nodes = append(s.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: extraNode, Labels: map[string]string{workerRole: ""}}})
}

// newDeployment is in the namespace openshift-control, unless the control is about another one.
func newDeployment(namespace, name string, n int32) appsv1.Deployment {
	labels := map[string]string{"app": name}
	return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}},
		},
	}}
}

func addDeployment(role string, n int32) func(*Input) bool {
	return onState(func(s *State) {
		d := newDeployment("openshift-control", "control", n)
		setNodeSelector(role)(&d)
		s.Deployments = append(s.Deployments, d)
	})
}
