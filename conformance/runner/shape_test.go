// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/cluster"
)

// TestShape: a copy contains what the scheduler uses and nothing that only kubelets use.
func TestShape(t *testing.T) {
	app := map[string]string{"app": "router-default"}
	source := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: "router-default"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: app},
	}}
	source.Spec.Template.Labels = app
	source.Spec.Template.Spec = corev1.PodSpec{
		HostNetwork: true, PriorityClassName: "system-cluster-critical", NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""},
		Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		TerminationGracePeriodSeconds: ptr.To[int64](3600), Volumes: []corev1.Volume{{Name: "certificates"}},
		Containers: []corev1.Container{{
			Name: "router", Image: "router", Ports: []corev1.ContainerPort{{ContainerPort: 443}, {ContainerPort: 80}, {ContainerPort: 80, Protocol: corev1.ProtocolUDP}},
			ReadinessProbe: &corev1.Probe{},
		}},
	}
	source.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	budget := func(namespace string, labels map[string]string) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "budget"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}
	}
	s := shapeOf(&source, []policyv1.PodDisruptionBudget{budget("openshift-ingress", app), budget("elsewhere", app), budget("openshift-ingress", map[string]string{"app": "other"})}, program{image: "pause", command: []string{"sh"}}, "run")
	if len(s.budgets) != 1 {
		t.Errorf("%d budgets, want the one over it", len(s.budgets))
	}
	pod := s.deployment.Spec.Template.Spec
	const ports = "443-TCP_80-TCP_80-UDP"
	want := corev1.PodSpec{
		PriorityClassName: "system-cluster-critical", NodeSelector: map[string]string{"node-role.kubernetes.io/master": ""}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		TerminationGracePeriodSeconds: ptr.To[int64](0), AutomountServiceAccountToken: ptr.To(false),
		// required by restricted pod security and by quotas
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: "RuntimeDefault"}},
		Containers: []corev1.Container{{
			Name: "copy", Image: "pause", Command: []string{"sh"}, Resources: copyResources(), ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{portLabel: ports}}, TopologyKey: corev1.LabelHostname,
		}}}},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Error(diff)
	}
	if got := s.deployment.Spec.Template.Labels; got[portLabel] != ports || got[cluster.RunLabel] != "run" || got["app"] != "router-default" {
		t.Errorf("labels are %v", got)
	}
	if s.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *s.deployment.Spec.Replicas != 2 {
		t.Errorf("%v with %d replicas", s.deployment.Spec.Strategy, *s.deployment.Spec.Replicas)
	}
	if source.Spec.Template.Labels[cluster.RunLabel] != "" {
		t.Error("the source was changed")
	}
}
