// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

func TestRollingUpdate(t *testing.T) {
	for mode, unavailable := range map[configv1.TopologyMode]int32{configv1.SingleReplicaTopologyMode: 0, configv1.HighlyAvailableTopologyMode: 1} {
		want := appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)), MaxSurge: ptr.To(intstr.FromInt32(1)),
			},
		}
		if diff := cmp.Diff(want, workload.RollingUpdate(topology.RolloutStrategy(mode, false))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

// A rolling update with another spelling and the same effect stays, because a change would be written for nothing.
func TestRoll(t *testing.T) {
	n, percent := intstr.FromInt32, intstr.FromString
	rollout := func(unavailable, surge intstr.IntOrString) topology.Rollout {
		return topology.Rollout{MaxUnavailable: unavailable, MaxSurge: surge}
	}
	first, last := rollout(n(0), n(1)), rollout(n(1), n(0))
	quarters := workload.RollingUpdate(rollout(percent("25%"), percent("25%")))
	quarter := workload.RollingUpdate(rollout(percent("25%"), n(0)))
	for name, test := range map[string]struct {
		present  appsv1.DeploymentStrategy
		replicas int32
		wanted   topology.Rollout
		stays    bool
	}{
		"the API's default, one":             {quarters, 1, first, true},
		"the API's default, two":             {quarters, 2, first, true},
		"the API's default, four":            {quarters, 4, rollout(n(1), n(1)), true},
		"the API's default, five":            {quarters, 5, rollout(n(1), n(1)), false},
		"the API's default, old pod first":   {quarters, 1, last, false},
		"neither rounds to a pod, one":       {quarter, 1, last, true},
		"neither rounds to a pod, new first": {quarter, 1, first, false},
		"more than there are":                {workload.RollingUpdate(rollout(n(3), n(0))), 2, rollout(percent("100%"), n(0)), true},
		"equal":                              {workload.RollingUpdate(first), 1, first, true},
		"unset":                              {appsv1.DeploymentStrategy{}, 1, first, false},
		"numbers unset": {appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{},
		}, 1, first, false},
		"recreate":       {appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, 1, last, false},
		"no percentages": {workload.RollingUpdate(rollout(percent("a"), percent("b"))), 1, first, false},
		"no surge":       {workload.RollingUpdate(rollout(n(0), percent("b"))), 1, first, false},
		"several by one": {workload.RollingUpdate(rollout(n(1), n(3))), 2, rollout(n(1), n(1)), false},
	} {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](7), Strategy: *test.present.DeepCopy()}}
		want := workload.RollingUpdate(test.wanted)
		if test.stays {
			want = test.present
		}
		workload.Roll(d, test.replicas, test.wanted)
		if diff := cmp.Diff(appsv1.DeploymentSpec{Replicas: &test.replicas, Strategy: want}, d.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAntiAffinity(t *testing.T) {
	labels := map[string]string{"app": "console"}
	term := func(keys ...string) corev1.PodAntiAffinity {
		return corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console"}},
			MatchLabelKeys: keys,
			TopologyKey:    "kubernetes.io/hostname",
		}}}
	}
	for separation, want := range map[workload.Separation]corev1.PodAntiAffinity{
		workload.SeparateNever: {}, workload.SeparatePerRevision: term("pod-template-hash"), workload.SeparateAlways: term(),
	} {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
		workload.Separate(d, separation)
		if diff := cmp.Diff(want, workload.AntiAffinityOf(d)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", separation, diff)
		}
	}
}

// TestDisruptionBudget shows R-SNO-3: no budget for one pod, and one that permits an eviction for several.
func TestDisruptionBudget(t *testing.T) {
	labels := map[string]string{"app": "console"}
	for _, mode := range []configv1.TopologyMode{
		configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode,
		configv1.ExternalTopologyMode, "", "Unknown",
	} {
		got := workload.DisruptionBudget("ns", "console", mode, labels)
		want := &policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "console"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
				Selector:                   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "console"}},
				UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", mode, diff)
		}
		got.Spec.Selector.MatchLabels["app"] = "changed"
		if labels["app"] != "console" {
			t.Fatal("the budget shares the caller's labels")
		}
	}
	if got := workload.DisruptionBudget("ns", "console", configv1.SingleReplicaTopologyMode, labels); got != nil {
		t.Errorf("SingleReplica: %v, want none", got)
	}
}
