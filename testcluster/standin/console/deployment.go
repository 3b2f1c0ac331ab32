// SPDX-License-Identifier: Apache-2.0

package console

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	masterRole = "node-role.kubernetes.io/master"
	// toleratedOutage is how long, in seconds, a pod stays on an unreachable node.
	toleratedOutage = 120

	priorityClass      = "system-cluster-critical"
	workloadAnnotation = "target.workload.openshift.io/management"
	workloadEffect     = `{"effect": "PreferredDuringScheduling"}`
)

type operand struct {
	name string
	// conditions is the prefix of its conditions.
	conditions string
}

func (o Options) operands() []operand {
	operands := []operand{{name: console.ConsoleName, conditions: "ConsoleDeployment"}}
	if o.Downloads {
		operands = append(operands, operand{name: console.DownloadsName, conditions: "DownloadsDeployment"})
	}
	return operands
}

// podLabels returns those of the stock operator's pods (U-CON-2).
func (o operand) podLabels() map[string]string {
	component := "ui"
	if o.name == console.DownloadsName {
		component = "downloads"
	}
	return map[string]string{"app": "console", "component": component}
}

// base returns the Deployment without what depends on the topology. It starts from the live one, or from nil, and keeps
// other fields such as defaults of the API server, so that an unchanged Deployment is equal.
func (o operand) base(live *appsv1.Deployment) *appsv1.Deployment {
	labels, selector := o.podLabels(), map[string]string{masterRole: ""}
	port := corev1.ContainerPort{Name: "https", ContainerPort: 8443, Protocol: corev1.ProtocolTCP}
	name, memory, grace := o.name, "100Mi", int64(40)
	if o.name == console.DownloadsName {
		selector[corev1.LabelOSStable] = string(corev1.Linux)
		port = corev1.ContainerPort{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}
		name, memory, grace = "download-server", "50Mi", 5
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: o.name}}
	if live != nil {
		live.DeepCopyInto(deployment)
	}
	deployment.Labels = standin.With(deployment.Labels, labels)
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{} // or one of another topology with the same effect would stay
	template := &deployment.Spec.Template
	template.Labels = maps.Clone(labels)
	template.Annotations = map[string]string{workloadAnnotation: workloadEffect} // library-go's resourceapply replaces those of others
	pod := &template.Spec
	container := corev1.Container{}
	if len(pod.Containers) > 0 {
		container = pod.Containers[0]
	}
	container.Name, container.Image, container.Ports = name, o.name+":1", []corev1.ContainerPort{port}
	container.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse(memory),
	}}
	pod.Containers, pod.NodeSelector, pod.Affinity = []corev1.Container{container}, selector, nil
	pod.PriorityClassName, pod.TerminationGracePeriodSeconds = priorityClass, &grace
	pod.Tolerations = []corev1.Toleration{
		{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](toleratedOutage)},
	}
	return deployment
}
