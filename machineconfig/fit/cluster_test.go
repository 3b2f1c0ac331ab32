// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig/fit"
)

type builder struct{ fit.Cluster }

func newCluster() *builder {
	return &builder{fit.Cluster{
		Nodes: []corev1.Node{}, Pods: []corev1.Pod{}, Budgets: []policyv1.PodDisruptionBudget{},
		ReplicaSets: []appsv1.ReplicaSet{}, StatefulSets: []appsv1.StatefulSet{},
	}}
}

// node adds a node for 10 pods, with so many cores and GiB.
func (b *builder) node(name string, cores, memory int64, change ...func(*corev1.Node)) *builder {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *quantity(cores),
		corev1.ResourceMemory: *quantity(memory << 30),
		corev1.ResourcePods:   *quantity(10),
	}
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue},
	}
	for _, f := range change {
		f(&node)
	}
	b.Nodes = append(b.Nodes, node)
	return b
}

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

func uid(kind, name string) types.UID { return types.UID(kind + "/" + name) }

// template returns the template of an application whose pods request so many cores and GiB.
func template(app string, cores, memory int64, change ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    *quantity(cores),
		corev1.ResourceMemory: *quantity(memory << 30),
	}}}}}
	for _, f := range change {
		f(&spec)
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: spec}
}

// pods adds a pod for each element of nodes.
func (b *builder) pods(kind, owner string, t corev1.PodTemplateSpec, nodes ...string) *builder {
	for i, node := range nodes {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("%s-%d", owner, i), Labels: maps.Clone(t.Labels)}, Spec: *t.Spec.DeepCopy()}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: uid(kind, owner), Controller: ptr.To(true)}}
		pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
		// Admission adds these to every pod.
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)})
		b.Pods = append(b.Pods, pod)
	}
	return b
}

func (b *builder) replicas(app string, t corev1.PodTemplateSpec, nodes ...string) *builder {
	set := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: app, UID: uid("ReplicaSet", app)}}
	set.Spec.Template = t
	b.ReplicaSets = append(b.ReplicaSets, set)
	return b.pods("ReplicaSet", app, t, nodes...)
}

func (b *builder) stateful(app, revision string, t corev1.PodTemplateSpec, node string) *builder {
	set := appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: app, UID: uid("StatefulSet", app)}}
	set.Spec.Template, set.Status.UpdateRevision = t, "v1"
	b.StatefulSets = append(b.StatefulSets, set)
	return b.pods("StatefulSet", app, t, node).pod(func(pod *corev1.Pod) { pod.Labels[appsv1.StatefulSetRevisionLabel] = revision })
}

func (b *builder) budget(name, app string, allowed int32) *builder {
	budget := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	budget.Status.DisruptionsAllowed = allowed
	b.Budgets = append(b.Budgets, budget)
	return b
}

func (b *builder) pod(change func(*corev1.Pod)) *builder {
	change(&b.Pods[len(b.Pods)-1])
	return b
}

func labelled(key, value string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Labels[key] = value }
}

func tainted(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "for", Value: "others", Effect: effect})
	}
}

func selecting(key, value string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{key: value} }
}

func hostPort(port int32) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
}

func term(app, key string, change ...func(*corev1.PodAffinityTerm)) []corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key}
	for _, f := range change {
		f(&t)
	}
	return []corev1.PodAffinityTerm{t}
}

func antiAffinity(app, key string, change ...func(*corev1.PodAffinityTerm)) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(app, key, change...)}}
	}
}

func affinity(app, key string, change ...func(*corev1.PodAffinityTerm)) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(app, key, change...)}}
	}
}

func inAnyNamespace(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} }

func volume(source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
}

func tolerating(t corev1.Toleration) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.Tolerations = append(spec.Tolerations, t) }
}
