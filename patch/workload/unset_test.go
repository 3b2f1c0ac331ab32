package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/patch/workload"
)

func TestUnsetAntiAffinity(t *testing.T) {
	const (
		affinity  = ".spec.template.spec.affinity"
		apart     = affinity + ".podAntiAffinity"
		required  = apart + ".requiredDuringSchedulingIgnoredDuringExecution"
		preferred = apart + ".preferredDuringSchedulingIgnoredDuringExecution"
	)
	terms := []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}}
	weighted := []corev1.WeightedPodAffinityTerm{{Weight: 1}}
	with := func(a *corev1.Affinity) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Affinity = a
		return d
	}
	pods := func(anti *corev1.PodAntiAffinity) *corev1.Affinity { return &corev1.Affinity{PodAntiAffinity: anti} }
	nodes := func(anti *corev1.PodAntiAffinity) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAntiAffinity: anti}
	}
	both := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms, PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	hard := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	soft := &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted}
	empty := &corev1.PodAntiAffinity{}
	for _, test := range []struct {
		name         string
		live, wanted *corev1.Affinity
		ours         bool
		want         []string
	}{
		{"nothing there", nil, nil, true, nil},
		{"nothing goes", pods(both), pods(both), true, nil},
		{"all goes", pods(both), nil, false, []string{required, preferred, affinity}},
		{"all goes, beside node affinity", nodes(both), nodes(nil), false, []string{required, preferred, apart}},
		{"required goes", pods(both), pods(soft), false, []string{required}},
		{"preferred goes", pods(both), pods(hard), false, []string{preferred}},
		{"an empty list was there", pods(&corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{}}), nil, false, nil},
		{"what we emptied", pods(empty), nil, true, []string{affinity}},
		{"what we emptied, further in", nodes(empty), nodes(nil), true, []string{apart}},
		{"an emptied map alone", &corev1.Affinity{}, nil, true, []string{affinity}},
		{"what somebody else has empty", pods(empty), nil, false, nil},
	} {
		if diff := cmp.Diff(test.want, workload.UnsetAntiAffinity(with(test.live), with(test.wanted), test.ours)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
