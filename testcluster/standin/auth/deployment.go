// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	// toleratedOutage is how long, in seconds, a pod stays on a node that is not ready or unreachable.
	toleratedOutage = 120
	auditVolume     = "audit-dir"
)

type operand struct {
	namespace, name string
	// component is the name in its container, its image and the label of its anti-affinity.
	component string
	budget    string
	// conditions is the prefix of its conditions.
	conditions string
	podLabels  map[string]string
	port       int32
	// annotations are those of the pods, priority is their class, and grace their termination grace period in seconds.
	annotations map[string]string
	priority    string
	grace       int64
	cpu, memory string
	// auditLog is the node's directory of the pods' audit log; empty for none.
	auditLog string
}

// The names are the stock operator's (U-AUTH-1, U-AUTH-2).
func oauthServer() operand {
	return operand{
		namespace: auth.OAuthServerNamespace, name: auth.OAuthServerName, component: "oauth-openshift", budget: auth.OAuthServerBudgetName,
		conditions: "OAuthServerDeployment", podLabels: map[string]string{"app": "oauth-openshift"}, port: 6443,
		annotations: map[string]string{"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`},
		priority:    "system-cluster-critical", grace: 40, cpu: "10m", memory: "50Mi",
	}
}

func oauthAPIServer() operand {
	return operand{
		namespace: auth.OAuthAPIServerNamespace, name: auth.OAuthAPIServerName, component: "oauth-apiserver", budget: auth.OAuthAPIServerBudgetName,
		conditions: "APIServerDeployment", podLabels: map[string]string{"app": "openshift-oauth-apiserver", "apiserver": "true"}, port: 8443,
		priority: "system-node-critical", grace: 70, cpu: "150m", memory: "200Mi", auditLog: "/var/log/oauth-apiserver",
	}
}

// baseTolerations returns those of the stock operator's templates.
func baseTolerations() []corev1.Toleration {
	return []corev1.Toleration{
		{Key: auth.ControlPlaneNodeLabel, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](toleratedOutage)},
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](toleratedOutage)},
	}
}

// base returns the Deployment of the stock operator's template, without what depends on the topology. It starts from
// the live one, or from nil, and keeps other fields such as defaults of the API server, so that an unchanged Deployment
// is equal. The nodes are simulated, so no image is pulled.
func (o operand) base(live *appsv1.Deployment) *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	if live != nil {
		live.DeepCopyInto(deployment)
	}
	deployment.Namespace, deployment.Name = o.namespace, o.name
	deployment.Labels = standin.With(deployment.Labels, o.podLabels)
	if deployment.Spec.Selector == nil {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: maps.Clone(o.podLabels)}
	}
	deployment.Spec.Template.Labels = maps.Clone(o.podLabels)
	deployment.Spec.Template.Annotations = standin.With(deployment.Spec.Template.Annotations, o.annotations)

	pod := &deployment.Spec.Template.Spec
	container := corev1.Container{}
	if i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == o.component }); i >= 0 {
		container = pod.Containers[i]
	}
	container.Name, container.Image = o.component, o.component+":1"
	container.Ports = []corev1.ContainerPort{{Name: "https", ContainerPort: o.port, Protocol: corev1.ProtocolTCP}}
	container.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(o.cpu), corev1.ResourceMemory: resource.MustParse(o.memory),
	}}
	container.VolumeMounts, pod.Volumes = nil, nil
	if o.auditLog != "" {
		container.VolumeMounts = []corev1.VolumeMount{{Name: auditVolume, MountPath: o.auditLog}}
		pod.Volumes = []corev1.Volume{{Name: auditVolume, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: o.auditLog, Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
		}}}
	}
	pod.InitContainers, pod.Containers = nil, []corev1.Container{container}
	pod.PriorityClassName, pod.TerminationGracePeriodSeconds = o.priority, ptr.To(o.grace)
	pod.NodeSelector, pod.Tolerations = map[string]string{auth.ControlPlaneNodeLabel: ""}, baseTolerations()
	pod.Affinity, pod.TopologySpreadConstraints = nil, nil
	return deployment
}
