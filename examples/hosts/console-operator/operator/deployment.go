// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
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

// baseDeployment returns the Deployment of the stock operator's template, without what depends on the topology. It must
// always be the same, because resourceapply compares a hash of the spec. The nodes are simulated, so no image is
// pulled.
func (o operand) baseDeployment() *appsv1.Deployment {
	labels := o.podLabels()
	selector := map[string]string{masterRole: ""}
	port := corev1.ContainerPort{Name: "https", ContainerPort: 8443, Protocol: corev1.ProtocolTCP}
	container, memory, grace := o.name, "100Mi", int64(40)
	if o.name == console.DownloadsName {
		selector[corev1.LabelOSStable] = string(corev1.Linux)
		port = corev1.ContainerPort{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}
		container, memory, grace = "download-server", "50Mi", 5
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: console.Namespace, Name: o.name, Labels: maps.Clone(labels)},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels), Annotations: map[string]string{workloadAnnotation: workloadEffect}},
				Spec: corev1.PodSpec{
					NodeSelector: selector, PriorityClassName: priorityClass, TerminationGracePeriodSeconds: &grace,
					Tolerations: []corev1.Toleration{
						{Key: masterRole, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
						{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](toleratedOutage)},
					},
					Containers: []corev1.Container{{
						Name: container, Image: o.name + ":1", Ports: []corev1.ContainerPort{port},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse(memory),
						}},
					}},
				},
			},
		},
	}
}
