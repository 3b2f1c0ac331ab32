// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/testcluster/standin"
)

const (
	canaryNamespace  = "openshift-ingress-canary"
	canaryName       = "ingress-canary"
	canaryOwnerLabel = "ingress.openshift.io/canary"
	canaryPodLabel   = "ingresscanary.operator.openshift.io/daemonset-ingresscanary"
	canaryController = "canary_controller"
)

// canary is the DaemonSet to which the stock operator sends requests through the default router; here it does nothing.
// It follows neither topology nor placement (U-ING-10). It starts from the live one, or from nil, and keeps defaults of
// the API server.
func canary(live *appsv1.DaemonSet) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{}
	if live != nil {
		live.DeepCopyInto(set)
	}
	set.Namespace, set.Name = canaryNamespace, canaryName
	set.Labels = standin.With(set.Labels, map[string]string{canaryOwnerLabel: canaryController})
	if set.Spec.Selector == nil {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{canaryPodLabel: canaryController}}
	}
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
	}
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("10%"))

	template := &set.Spec.Template
	template.Annotations = standin.With(template.Annotations, managementWorkload())
	template.Labels = standin.With(template.Labels, map[string]string{canaryPodLabel: canaryController})
	pod := &template.Spec
	container := corev1.Container{}
	if len(pod.Containers) > 0 {
		container = pod.Containers[0]
	}
	container.Name, container.Image = "serve-healthcheck-canary", "ingress-operator"
	container.Ports = []corev1.ContainerPort{
		{ContainerPort: 8443, Protocol: corev1.ProtocolTCP}, {ContainerPort: 8888, Protocol: corev1.ProtocolTCP},
	}
	container.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("20Mi"),
	}}
	pod.Containers = []corev1.Container{container}
	pod.PriorityClassName = priorityClass
	pod.NodeSelector = map[string]string{corev1.LabelOSStable: string(corev1.Linux)}
	pod.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/infra", Operator: corev1.TolerationOpExists}}
	return set
}
