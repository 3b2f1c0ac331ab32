// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/auth/internal/fixture"
)

func must[T any](got T, err error) T {
	if err != nil {
		panic(err)
	}
	return got
}

var (
	master       = fixture.Tolerate("node-role.kubernetes.io/master", corev1.TaintEffectNoSchedule)
	controlPlane = fixture.Tolerate("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule)
)

func term(labels map[string]string, revisions ...string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, MatchLabelKeys: revisions, TopologyKey: "kubernetes.io/hostname",
	}
}

func antiAffinity(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}
