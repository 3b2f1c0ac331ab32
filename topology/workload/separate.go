// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Separation is the anti-affinity between a Deployment's pods.
type Separation int

const (
	// SeparateNever adds no anti-affinity: pods may share a node.
	SeparateNever Separation = iota
	// SeparatePerRevision separates pods of one revision, so that a rollout needs no free node. An old API server drops
	// matchLabelKeys, which separates all pods; a rollout with topology.RolloutStrategy finishes also then.
	SeparatePerRevision
	// SeparateAlways separates all pods; a rollout must first free a node, see topology.RolloutStrategy.
	SeparateAlways
)

// Separate replaces all anti-affinity terms about nodes that select the Deployment's own pods, by any label. Terms
// about other pods, namespaces and zones stay, and a required term that has the wanted effect already, by other labels,
// unless it selects others, the labels of pods that may share a node with these. A Deployment without a selector gets
// no term. An expression with the operator In and no values, which an operator fills in later by revision, matches any.
func Separate(deployment *appsv1.Deployment, separation Separation, others ...labels.Set) {
	pod := &deployment.Spec.Template.Spec
	separates := func(term corev1.PodAffinityTerm) bool {
		return term.TopologyKey == corev1.LabelHostname && selects(term, deployment.Namespace, deployment.Spec.Template.Labels)
	}
	separated := false
	replaced := func(term corev1.PodAffinityTerm) bool {
		if !separates(term) {
			return false
		}
		keep := !separated && separatesAs(term, separation) &&
			!slices.ContainsFunc(others, func(other labels.Set) bool { return selects(term, deployment.Namespace, other) })
		separated = separated || keep
		return !keep
	}
	present := AntiAffinityOf(deployment)
	wanted := *present.DeepCopy()
	wanted.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(wanted.RequiredDuringSchedulingIgnoredDuringExecution, replaced)
	wanted.PreferredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(wanted.PreferredDuringSchedulingIgnoredDuringExecution,
		func(term corev1.WeightedPodAffinityTerm) bool { return separates(term.PodAffinityTerm) })
	if selector := deployment.Spec.Selector.DeepCopy(); selector != nil && !separated {
		wanted.RequiredDuringSchedulingIgnoredDuringExecution = append(
			wanted.RequiredDuringSchedulingIgnoredDuringExecution, terms(separation, selector)...)
	}
	if !equality.Semantic.DeepEqual(wanted, present) {
		SetAntiAffinity(pod, wanted)
	}
}

// separatesAs reports whether a term that selects a Deployment's own pods keeps them apart as wanted.
func separatesAs(term corev1.PodAffinityTerm, separation Separation) bool {
	selector := ptr.Deref(term.LabelSelector, metav1.LabelSelector{})
	foreign := len(term.Namespaces) > 0 || term.NamespaceSelector != nil || len(term.MismatchLabelKeys) > 0 ||
		len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
	byRevision := slices.Equal(term.MatchLabelKeys, []string{appsv1.DefaultDeploymentUniqueLabelKey})
	for _, expression := range selector.MatchExpressions {
		foreign = foreign || expression.Operator != metav1.LabelSelectorOpIn
		byRevision = byRevision || len(expression.Values) == 0
	}
	switch separation {
	case SeparatePerRevision:
		return !foreign && byRevision
	case SeparateAlways:
		return !foreign && !byRevision && len(term.MatchLabelKeys) == 0
	case SeparateNever:
	}
	return false
}

// AntiAffinityOf returns the anti-affinity of a Deployment's pods, which may be empty.
func AntiAffinityOf(deployment *appsv1.Deployment) corev1.PodAntiAffinity {
	affinity := deployment.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return corev1.PodAntiAffinity{}
	}
	return *affinity.PodAntiAffinity
}

func terms(separation Separation, selector *metav1.LabelSelector) []corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: corev1.LabelHostname}
	switch separation {
	case SeparateNever:
		return nil
	case SeparatePerRevision:
		term.MatchLabelKeys = []string{appsv1.DefaultDeploymentUniqueLabelKey}
	case SeparateAlways:
	}
	return []corev1.PodAffinityTerm{term}
}

// SetAntiAffinity sets anti-affinity, no empty lists and maps: they would change the pod template.
func SetAntiAffinity(pod *corev1.PodSpec, wanted corev1.PodAntiAffinity) {
	affinity := corev1.Affinity{}
	if pod.Affinity != nil {
		affinity = *pod.Affinity
	}
	affinity.PodAntiAffinity = nil
	if len(wanted.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		wanted.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	if len(wanted.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		wanted.PreferredDuringSchedulingIgnoredDuringExecution = nil
	}
	if wanted.RequiredDuringSchedulingIgnoredDuringExecution != nil || wanted.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		affinity.PodAntiAffinity = &wanted
	}
	pod.Affinity = &affinity
	if affinity.NodeAffinity == nil && affinity.PodAffinity == nil && affinity.PodAntiAffinity == nil {
		pod.Affinity = nil
	}
}

// selects reports whether a term selects pods with the labels in the namespace. It selects namespaces only by name.
func selects(term corev1.PodAffinityTerm, namespace string, pods labels.Set) bool {
	return (len(term.Namespaces) == 0 && term.NamespaceSelector == nil || slices.Contains(term.Namespaces, namespace) ||
		matches(term.NamespaceSelector, labels.Set{corev1.LabelMetadataName: namespace})) && matches(withoutEmptyIn(term.LabelSelector), pods)
}

// withoutEmptyIn removes expressions without values.
func withoutEmptyIn(selector *metav1.LabelSelector) *metav1.LabelSelector {
	filled := selector.DeepCopy()
	if filled != nil {
		filled.MatchExpressions = slices.DeleteFunc(filled.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			return r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 0
		})
	}
	return filled
}

// matches returns false for nil, which selects nothing, and for an invalid selector.
func matches(selector *metav1.LabelSelector, of labels.Set) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(of)
}
