package auth

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// shapeField is one field of a Deployment that the shape sets.
type shapeField struct {
	path string
	of   func(*appsv1.Deployment) any
}

func shapeFields() []shapeField {
	pod := func(d *appsv1.Deployment) corev1.PodSpec { return d.Spec.Template.Spec }
	return []shapeField{
		{FieldReplicas, func(d *appsv1.Deployment) any { return d.Spec.Replicas }},
		{FieldStrategy, func(d *appsv1.Deployment) any { return d.Spec.Strategy }},
		{FieldNodeSelector, func(d *appsv1.Deployment) any { return pod(d).NodeSelector }},
		{FieldTolerations, func(d *appsv1.Deployment) any { return pod(d).Tolerations }},
		{FieldRequiredAntiAffinity, func(d *appsv1.Deployment) any {
			return antiAffinity(d).RequiredDuringSchedulingIgnoredDuringExecution
		}},
		{FieldPreferredAntiAffinity, func(d *appsv1.Deployment) any {
			return antiAffinity(d).PreferredDuringSchedulingIgnoredDuringExecution
		}},
	}
}

// antiAffinity is empty where there is none: an emptied one stays on the object and means the same.
func antiAffinity(d *appsv1.Deployment) corev1.PodAntiAffinity {
	affinity := d.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return corev1.PodAntiAffinity{}
	}
	return *affinity.PodAntiAffinity
}

// differences are the fields of the shape in which two Deployments differ.
func differences(live, shaped *appsv1.Deployment) []string {
	var fields []string
	for _, field := range shapeFields() {
		if !equality.Semantic.DeepEqual(field.of(live), field.of(shaped)) {
			fields = append(fields, field.path)
		}
	}
	return fields
}

// gone are the lists of anti-affinity that the live Deployment has and the shaped one must not have. An apply of the shape removes
// them where we own them alone; others must be named to be removed.
func gone(live, shaped *appsv1.Deployment) []string {
	have, want := antiAffinity(live), antiAffinity(shaped)
	var fields []string
	if len(have.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && len(want.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		fields = append(fields, FieldRequiredAntiAffinity)
	}
	if len(have.PreferredDuringSchedulingIgnoredDuringExecution) > 0 && len(want.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		fields = append(fields, FieldPreferredAntiAffinity)
	}
	return fields
}
