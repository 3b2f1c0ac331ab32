// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

func consoleAffinity() Check {
	setAffinity := func(affinity func(own corev1.PodAffinityTerm) *corev1.Affinity) func(*Input) bool {
		return onDeployment(downloads, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity = affinity(corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: d.Spec.Selector.MatchLabels}, TopologyKey: corev1.LabelHostname,
			})
		})
	}
	return Check{
		ID: "SNO-CON-003", Title: "Console and downloads have no affinity between pods on a single control-plane node", Module: console, Level: Core, Tier: Static,
		Requirement: Requirement{"R-CON-1", "console and downloads have one replica and no affinity rules on a single control-plane node"},
		Topologies:  []string{"SingleReplica", "External"}, NotApplicable: firstOf(allAbsent(consoles()...), operandsSingle),
		Run: eachOf(consoles(), func(_ *State, d *appsv1.Deployment) []report.Evidence {
			got := "none"
			if betweenPods(d.Spec.Template.Spec.Affinity) {
				got = "rules about pods"
			}
			return []report.Evidence{found(NameOf(d), "spec.template.spec.affinity", "none", got, got == "none")}
		}),
		Controls: []Control{
			{Name: "required anti-affinity of console", Change: onDeployment(consoleServer, deadlock)},
			{Name: "required anti-affinity of downloads", Change: onDeployment(downloads, deadlock)},
			{Name: "a rule about nodes", MustPass: true, Change: onDeployment(consoleServer, keepOffControlPlane)},
			{Name: "empty rules of downloads", MustPass: true, Change: setAffinity(func(corev1.PodAffinityTerm) *corev1.Affinity {
				return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, PodAffinity: &corev1.PodAffinity{}}
			})},
			{Name: "preferred anti-affinity of downloads", Change: setAffinity(func(own corev1.PodAffinityTerm) *corev1.Affinity {
				preferred := []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: own}}
				return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
			})},
			{Name: "required affinity of downloads", Change: setAffinity(func(own corev1.PodAffinityTerm) *corev1.Affinity {
				return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{own}}}
			})},
		},
	}
}

// betweenPods reports whether a rule about other pods exists. Empty rules, which a release of fields leaves, do not
// count.
func betweenPods(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	apart, together := ptr.Deref(affinity.PodAntiAffinity, corev1.PodAntiAffinity{}), ptr.Deref(affinity.PodAffinity, corev1.PodAffinity{})
	return len(apart.RequiredDuringSchedulingIgnoredDuringExecution)+len(apart.PreferredDuringSchedulingIgnoredDuringExecution)+
		len(together.RequiredDuringSchedulingIgnoredDuringExecution)+len(together.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}
