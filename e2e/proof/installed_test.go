// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/testcluster/scenario"
)

// install creates the Deployments console, oauth-openshift and that of the OAuth API server as an installation for
// three control-plane nodes has them. Their field manager is an installer, so no operator reconciles them.
func (p *proof) install() {
	p.t.Helper()
	for _, deployment := range []*appsv1.Deployment{
		madeForThree(scenario.ConsoleNamespace, "console", map[string]string{"app": "console", "component": "ui"}, 2, 1, 1),
		madeForThree(scenario.OAuthServerNamespace, "oauth-openshift", map[string]string{"app": "oauth-openshift"}, 3, 2, 3),
		madeForThree(scenario.OAuthAPIServerNamespace, "apiserver", map[string]string{"app": "openshift-oauth-apiserver"}, 3, 1, 0),
	} {
		p.must(p.Cluster.Client().Create(p.ctx, deployment, client.FieldOwner(scenario.InstallerManager)))
	}
}

// madeForThree returns a Deployment that keeps its pods on different control-plane nodes, whatever their revision.
func madeForThree(namespace, name string, labels map[string]string, replicas, unavailable, surge int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(labels)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)), MaxSurge: ptr.To(intstr.FromInt32(surge)),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{scenario.MasterTaint: ""},
					Tolerations:  []corev1.Toleration{{Key: scenario.MasterTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
							LabelSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}, TopologyKey: corev1.LabelHostname,
						}},
					}},
					Containers: []corev1.Container{{
						Name: name, Image: name,
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
						}},
					}},
				},
			},
		},
	}
}
