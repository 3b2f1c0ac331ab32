package workload

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Separation is how the pods of one Deployment keep away from each other.
type Separation int

const (
	// Together lets them share a node.
	Together Separation = iota
	// PerRevision keeps those of one revision on different nodes: a pod of the new ReplicaSet may start on a node that still runs one of
	// the old, so a rollout needs no free node, also where one of the replicas is Pending because there is no second node. Where the API
	// server is too old for matchLabelKeys it drops the field, and the term separates all pods; topology.RolloutStrategy finishes under
	// that as well.
	PerRevision
	// Always keeps them on different nodes whatever their revision: for a pod that is the only writer of something on its node, such as an
	// audit log. The rollout must then free a node before it fills it, which is what topology.RolloutStrategy does for exclusive pods.
	Always
)

// Separate puts the anti-affinity that is wanted, or none, in the place of every term by which the Deployment's pods keep each other
// off a node, also one that a stock operator brought under a label of its own. Terms about other pods, about pods of other namespaces,
// about zones or other parts of a cluster, and other kinds of affinity stay. A Deployment without a selector, which no API server
// accepts, has nothing to select by and gets no term.
//
// An expression with the operator In and no values is one that an operator fills in later, such as with a hash of the pod template. It is
// taken for any value, so such a term goes as well: the operator must not fill it in afterwards.
func Separate(deployment *appsv1.Deployment, separation Separation) {
	pod := &deployment.Spec.Template.Spec
	keepsApart := func(term corev1.PodAffinityTerm) bool {
		return term.TopologyKey == corev1.LabelHostname && selects(term, deployment.Namespace, deployment.Spec.Template.Labels)
	}
	wanted := corev1.PodAntiAffinity{}
	if pod.Affinity != nil && pod.Affinity.PodAntiAffinity != nil {
		wanted = *pod.Affinity.PodAntiAffinity.DeepCopy()
	}
	wanted.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(wanted.RequiredDuringSchedulingIgnoredDuringExecution, keepsApart)
	wanted.PreferredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(wanted.PreferredDuringSchedulingIgnoredDuringExecution,
		func(term corev1.WeightedPodAffinityTerm) bool { return keepsApart(term.PodAffinityTerm) })
	if selector := deployment.Spec.Selector.DeepCopy(); selector != nil {
		wanted.RequiredDuringSchedulingIgnoredDuringExecution = append(wanted.RequiredDuringSchedulingIgnoredDuringExecution, terms(separation, selector)...)
	}
	setAntiAffinity(pod, wanted)
}

// AntiAffinity is the anti-affinity of pods with these labels alone, nil for Together.
func AntiAffinity(separation Separation, podLabels map[string]string) *corev1.PodAntiAffinity {
	required := terms(separation, &metav1.LabelSelector{MatchLabels: maps.Clone(podLabels)})
	if required == nil {
		return nil
	}
	return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
}

func terms(separation Separation, selector *metav1.LabelSelector) []corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: corev1.LabelHostname}
	switch separation {
	case Together:
		return nil
	case PerRevision:
		term.MatchLabelKeys = []string{appsv1.DefaultDeploymentUniqueLabelKey}
	case Always:
	}
	return []corev1.PodAffinityTerm{term}
}

// setAntiAffinity leaves nothing empty behind: an empty rule means the same as none, but is another pod template.
func setAntiAffinity(pod *corev1.PodSpec, wanted corev1.PodAntiAffinity) {
	affinity := corev1.Affinity{}
	if pod.Affinity != nil {
		affinity = *pod.Affinity
	}
	if len(wanted.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		wanted.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	if len(wanted.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		wanted.PreferredDuringSchedulingIgnoredDuringExecution = nil
	}
	affinity.PodAntiAffinity = nil
	if wanted.RequiredDuringSchedulingIgnoredDuringExecution != nil || wanted.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		affinity.PodAntiAffinity = &wanted
	}
	pod.Affinity = &affinity
	if affinity.NodeAffinity == nil && affinity.PodAffinity == nil && affinity.PodAntiAffinity == nil {
		pod.Affinity = nil
	}
}

// selects tells whether a term is about pods with these labels in the namespace of the pod that has the term. Of a namespace nothing but
// its name is known, which is a label of it as well: a selector by any other label is taken to select other namespaces.
func selects(term corev1.PodAffinityTerm, namespace string, pods labels.Set) bool {
	return (len(term.Namespaces) == 0 && term.NamespaceSelector == nil || slices.Contains(term.Namespaces, namespace) ||
		matches(term.NamespaceSelector, labels.Set{corev1.LabelMetadataName: namespace})) && matches(filledIn(term.LabelSelector), pods)
}

// filledIn is the selector without the expressions whose values are not there yet.
func filledIn(selector *metav1.LabelSelector) *metav1.LabelSelector {
	filled := selector.DeepCopy()
	if filled != nil {
		filled.MatchExpressions = slices.DeleteFunc(filled.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			return r.Operator == metav1.LabelSelectorOpIn && len(r.Values) == 0
		})
	}
	return filled
}

// matches is false for no selector, which selects nothing, and for one that cannot be read.
func matches(selector *metav1.LabelSelector, of labels.Set) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(of)
}
