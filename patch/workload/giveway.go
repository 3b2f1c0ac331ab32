package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// GiveWay lets one rollout finish that would wait for ever (R-SNO-2). Required anti-affinity works both ways: a pod
// that has it keeps others off its node even when they have none. So where the shape takes it away and also wants the
// new pod to run before the old one goes, as on one node, the old pod keeps the new one out and waits for it. GiveWay
// raises maxUnavailable from 0 to 1 while such pods may be there, and leaves everything else as it is.
//
// shaped is what is to be written, live what is stored; nil where there is none. Whether the old pods are gone is read from live: it
// still has the anti-affinity, or its rollout with maxUnavailable 1 has not finished. Call it on every look: once that rollout has
// finished, maxUnavailable stays 0, and further rollouts have no outage.
//
// Anti-affinity that is limited to one revision (matchLabelKeys with pod-template-hash) does not touch the new pods.
func GiveWay(shaped, live *appsv1.Deployment) {
	if live != nil && surgesFirst(shaped) && (repels(live, shaped) || givingWay(live, shaped)) {
		shaped.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
}

func surgesFirst(shaped *appsv1.Deployment) bool {
	update := shaped.Spec.Strategy.RollingUpdate
	return update != nil && update.MaxUnavailable != nil && *update.MaxUnavailable == intstr.FromInt32(0)
}

// repels tells whether the pods of the live template keep those of the shaped one off their nodes.
func repels(live, shaped *appsv1.Deployment) bool {
	affinity := live.Spec.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return false
	}
	newcomers := labels.Set(shaped.Spec.Template.Labels)
	for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if selects(term, live.Namespace, newcomers) && !slices.Contains(term.MatchLabelKeys, appsv1.DefaultDeploymentUniqueLabelKey) {
			return true
		}
	}
	return false
}

// givingWay tells whether a rollout that may take a pod away has not finished. With another number of replicas it was another shape's.
func givingWay(live, shaped *appsv1.Deployment) bool {
	update := live.Spec.Strategy.RollingUpdate
	return ptr.Equal(live.Spec.Replicas, shaped.Spec.Replicas) && update != nil && update.MaxUnavailable != nil && *update.MaxUnavailable == intstr.FromInt32(1) && !RolledOut(live)
}
