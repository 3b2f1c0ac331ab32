// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	canaryNamespace  = "openshift-ingress-canary"
	canaryName       = "ingress-canary"
	canaryOwnerLabel = "ingress.openshift.io/canary"
	canaryPodLabel   = "ingresscanary.operator.openshift.io/daemonset-ingresscanary"
	canaryController = "canary_controller"
)

// ensureCanary maintains the DaemonSet to which the stock operator sends requests through the default router. It
// follows neither topology nor placement (U-ING-10). It does nothing here.
func (r *reconciler) ensureCanary(ctx context.Context) error {
	live, err := get(ctx, r.client, client.ObjectKey{Namespace: canaryNamespace, Name: canaryName}, &appsv1.DaemonSet{})
	if err != nil {
		return err
	}
	want := canary(live)
	switch {
	case live == nil:
		return r.create(ctx, want)
	case !equality.Semantic.DeepEqual(live, want):
		return r.update(ctx, want)
	}
	return nil
}

// canary starts from the live one, or from nil, and keeps defaults of the API server.
func canary(live *appsv1.DaemonSet) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{}
	if live != nil {
		live.DeepCopyInto(set)
	}
	set.Namespace, set.Name = canaryNamespace, canaryName
	set.Labels = with(set.Labels, canaryOwnerLabel, canaryController)
	if set.Spec.Selector == nil {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{canaryPodLabel: canaryController}}
	}
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
	}
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("10%"))

	template := &set.Spec.Template
	template.Annotations = with(template.Annotations, workloadAnnotation, workloadAnnotationEffect)
	template.Labels = with(template.Labels, canaryPodLabel, canaryController)
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
