package workload

import (
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
	// PerRevision is SpreadOverNodes.
	PerRevision
	// Always keeps them on different nodes whatever their revision, for a pod that is the only writer of something there.
	Always
)

// Separate puts the anti-affinity that is wanted, or none, in the place of every term by which the Deployment's pods keep away
// from each other, also one that a stock operator brought under a label of its own. Terms about other pods and other kinds of
// affinity stay. A Deployment without a selector, which no API server accepts, has nothing to select by and gets no term.
func Separate(deployment *appsv1.Deployment, separation Separation) {
	pod := &deployment.Spec.Template.Spec
	own := labels.Set(deployment.Spec.Template.Labels)
	affinity := pod.Affinity
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	wanted := &corev1.PodAntiAffinity{}
	if present := affinity.PodAntiAffinity; present != nil {
		for _, term := range present.RequiredDuringSchedulingIgnoredDuringExecution {
			if !selects(term, own) {
				wanted.RequiredDuringSchedulingIgnoredDuringExecution = append(wanted.RequiredDuringSchedulingIgnoredDuringExecution, term)
			}
		}
		for _, term := range present.PreferredDuringSchedulingIgnoredDuringExecution {
			if !selects(term.PodAffinityTerm, own) {
				wanted.PreferredDuringSchedulingIgnoredDuringExecution = append(wanted.PreferredDuringSchedulingIgnoredDuringExecution, term)
			}
		}
	}
	var apart *corev1.Affinity
	switch selector := deployment.Spec.Selector.DeepCopy(); {
	case selector == nil || separation == Together:
	case separation == PerRevision:
		apart = spread(selector)
	default:
		apart = onePerNode(selector)
	}
	if apart != nil {
		wanted.RequiredDuringSchedulingIgnoredDuringExecution = append(wanted.RequiredDuringSchedulingIgnoredDuringExecution,
			apart.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	affinity.PodAntiAffinity = nil
	if len(wanted.RequiredDuringSchedulingIgnoredDuringExecution)+len(wanted.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
		affinity.PodAntiAffinity = wanted
	}
	pod.Affinity = affinity
	if affinity.NodeAffinity == nil && affinity.PodAffinity == nil && affinity.PodAntiAffinity == nil {
		pod.Affinity = nil
	}
}

func selects(term corev1.PodAffinityTerm, own labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	return err == nil && selector.Matches(own)
}
