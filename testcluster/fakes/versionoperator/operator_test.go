// SPDX-License-Identifier: Apache-2.0

package versionoperator

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/testcluster/scenario"
)

func TestEnforce(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   bool
	}{
		{"as in the manifest", func(*appsv1.Deployment) {}, false},
		{"fewer pods", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }, true},
		{"no anti-affinity", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Affinity = nil }, true},
		{"pinned", func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector[scenario.MasterTaint] = "" }, true},
		{"another toleration", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "more"})
		}, true},
		{"another image", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }, true},
		{"without its container", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil }, true},
		{"a strategy", func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType }, false},
		{"a restart", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"restarted": "now"} }, false},
		{"defaults of the API server", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].ImagePullPolicy, d.Spec.Template.Spec.DNSPolicy = corev1.PullAlways, corev1.DNSClusterFirst
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := downloads()
			test.change(live)
			if got := Downloads.enforce(live); got != test.want {
				t.Errorf("a difference: %v, want %v", got, test.want)
			}
			if Downloads.enforce(live) {
				t.Error("a second call still reports a difference")
			}
		})
	}
}

func TestEnforceBudget(t *testing.T) {
	for name, change := range map[string]func(*policyv1.PodDisruptionBudgetSpec){
		"as in the manifest": nil,
		"another number":     func(s *policyv1.PodDisruptionBudgetSpec) { s.MaxUnavailable = ptr.To(intstr.FromInt32(2)) },
		"a field that the manifest does not have": func(s *policyv1.PodDisruptionBudgetSpec) {
			s.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
		},
	} {
		live := guardBudget()
		if change != nil {
			change(&live.Spec)
		}
		if got := GuardBudget.enforce(live); got != (change != nil) || !equality.Semantic.DeepEqual(live, guardBudget()) {
			t.Errorf("%s: changed %t, %+v", name, got, live.Spec)
		}
	}
}
