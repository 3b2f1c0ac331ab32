package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The fields of a Deployment that hold its anti-affinity. The two lists are atomic in the API, the maps around them are not.
const (
	FieldAffinity              = ".spec.template.spec.affinity"
	FieldPodAntiAffinity       = FieldAffinity + ".podAntiAffinity"
	FieldRequiredAntiAffinity  = FieldPodAntiAffinity + ".requiredDuringSchedulingIgnoredDuringExecution"
	FieldPreferredAntiAffinity = FieldPodAntiAffinity + ".preferredDuringSchedulingIgnoredDuringExecution"
)

// UnsetAntiAffinity lists what must be made absent beside an apply of wanted, which is live after Separate: the lists that go, and the outermost map
// around them that has nothing in it afterwards. ours tells whether the caller owns something in the live affinity: then an empty map is what an
// earlier write of its own left behind. Somebody else's empty map, which says nothing, stays.
func UnsetAntiAffinity(live, wanted *appsv1.Deployment, ours bool) []string {
	have, want := AntiAffinityOf(live), AntiAffinityOf(wanted)
	var fields []string
	if len(have.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && len(want.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		fields = append(fields, FieldRequiredAntiAffinity)
	}
	if len(have.PreferredDuringSchedulingIgnoredDuringExecution) > 0 && len(want.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		fields = append(fields, FieldPreferredAntiAffinity)
	}
	if len(fields) == 0 && !ours {
		return nil
	}
	switch before, after := live.Spec.Template.Spec.Affinity, wanted.Spec.Template.Spec.Affinity; {
	case before == nil:
	case after == nil:
		fields = append(fields, FieldAffinity)
	case before.PodAntiAffinity != nil && after.PodAntiAffinity == nil:
		fields = append(fields, FieldPodAntiAffinity)
	}
	return fields
}

// AntiAffinityOf is the anti-affinity of a Deployment's pods; without any it is empty, which means the same.
func AntiAffinityOf(deployment *appsv1.Deployment) corev1.PodAntiAffinity {
	affinity := deployment.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return corev1.PodAntiAffinity{}
	}
	return *affinity.PodAntiAffinity
}
