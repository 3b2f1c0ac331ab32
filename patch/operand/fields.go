// SPDX-License-Identifier: Apache-2.0

package operand

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The fields of a shape, and the maps around its anti-affinity. Node selector, tolerations and the lists of
// anti-affinity are atomic: a manager that sets an element owns all of it.
const (
	FieldReplicas              = ".spec.replicas"
	FieldStrategyType          = ".spec.strategy.type"
	FieldMaxUnavailable        = ".spec.strategy.rollingUpdate.maxUnavailable"
	FieldMaxSurge              = ".spec.strategy.rollingUpdate.maxSurge"
	FieldNodeSelector          = ".spec.template.spec.nodeSelector"
	FieldTolerations           = ".spec.template.spec.tolerations"
	FieldAffinity              = ".spec.template.spec.affinity"
	FieldPodAntiAffinity       = FieldAffinity + ".podAntiAffinity"
	FieldRequiredAntiAffinity  = FieldPodAntiAffinity + ".requiredDuringSchedulingIgnoredDuringExecution"
	FieldPreferredAntiAffinity = FieldPodAntiAffinity + ".preferredDuringSchedulingIgnoredDuringExecution"
)

// Fields returns the fields of a shape, which are taken and released together.
func Fields() []string {
	return []string{
		FieldReplicas, FieldStrategyType, FieldMaxUnavailable, FieldMaxSurge, FieldNodeSelector, FieldTolerations,
		FieldRequiredAntiAffinity, FieldPreferredAntiAffinity,
	}
}

// valuesOf returns the existing Fields of a Deployment as decoded JSON.
func valuesOf(d *appsv1.Deployment) map[string]any {
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(d) // every Deployment has a JSON form
	values := map[string]any{}
	for _, field := range Fields() {
		if value, found, _ := unstructured.NestedFieldNoCopy(content, names(field)...); found {
			values[field] = value
		}
	}
	return values
}

func names(field string) []string { return strings.Split(field[1:], ".") }
