// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// TestUnblockRollout shows R-SNO-2: a rollout that old pods would block on the only node may delete them.
func TestUnblockRollout(t *testing.T) {
	own := map[string]string{"app": "console", "component": "downloads"}
	deployment := func(maxUnavailable int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 3},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](1),
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxUnavailable: ptr.To(intstr.FromInt32(maxUnavailable)), MaxSurge: ptr.To(intstr.FromInt32(1)),
				}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: own}},
			},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
		}
		for _, c := range change {
			c(d)
		}
		return d
	}
	apart := func(selector map[string]string, keys ...string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: selector}, MatchLabelKeys: keys, TopologyKey: corev1.LabelHostname,
				}},
			}}
		}
	}
	quarters := func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate.MaxUnavailable, d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("25%")), ptr.To(intstr.FromString("25%"))
	}
	unobserved := func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 2 }
	unfinished := func(d *appsv1.Deployment) { d.Status.Replicas = 2 }
	for name, test := range map[string]struct {
		shaped, live *appsv1.Deployment
		want         int32
	}{
		"new":                           {deployment(0), nil, 0},
		"unchanged":                     {deployment(0), deployment(0), 0},
		"old pods block":                {deployment(0), deployment(0, apart(own)), 1},
		"old pods block by one label":   {deployment(0), deployment(0, apart(map[string]string{"app": "console"})), 1},
		"old pods block others":         {deployment(0), deployment(0, apart(map[string]string{"app": "other"})), 0},
		"old pods block their revision": {deployment(0), deployment(0, apart(own, appsv1.DefaultDeploymentUniqueLabelKey)), 0},
		"written, not yet observed":     {deployment(0), deployment(1, unobserved), 1},
		"unfinished":                    {deployment(0), deployment(1, unfinished), 1},
		"of the previous shape": {deployment(0), deployment(1, unfinished, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }),
			0},
		"done":                             {deployment(0), deployment(1), 0},
		"unfinished with maxUnavailable 0": {deployment(0), deployment(0, unfinished), 0},
		"old pods block, 25% of one":       {deployment(0, quarters), deployment(0, apart(own)), 1},
		"unfinished, 25% of one":           {deployment(0, quarters), deployment(1, unfinished), 1},
		"done, 25% of one":                 {deployment(0, quarters), deployment(1), 0},
		"several replicas":                 {deployment(1), deployment(1, apart(own)), 1},
		"recreate, without rolling update": {deployment(0, func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil }), deployment(0, apart(own)),
			-1},
	} {
		UnblockRollout(test.shaped, test.live)
		got := int32(-1)
		if update := test.shaped.Spec.Strategy.RollingUpdate; update != nil {
			got = update.MaxUnavailable.IntVal
		}
		if got != test.want {
			t.Errorf("%s: maxUnavailable is %d, want %d", name, got, test.want)
		}
	}
}
