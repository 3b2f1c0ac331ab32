// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// UnblockRollout raises maxUnavailable from 0 to 1 while anti-affinity of old pods may keep new pods off their nodes,
// so that the rollout can finish on one node (R-SNO-2). Call it at each reconciliation: shaped is what will be written,
// live what is stored, or nil. Anti-affinity per revision does not affect new pods.
func UnblockRollout(shaped, live *appsv1.Deployment) {
	if live != nil && surgesFirst(shaped) && (blocksNewPods(live, shaped) || isUnblocked(live, shaped)) {
		shaped.Spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
}

func surgesFirst(shaped *appsv1.Deployment) bool {
	unavailable, _, ok := Steps(shaped.Spec.Strategy, ptr.Deref(shaped.Spec.Replicas, 1))
	return ok && unavailable == 0
}

// blocksNewPods reports whether live pods keep shaped ones off their nodes.
func blocksNewPods(live, shaped *appsv1.Deployment) bool {
	for _, term := range AntiAffinityOf(live).RequiredDuringSchedulingIgnoredDuringExecution {
		selected := selects(term, live.Namespace, labels.Set(shaped.Spec.Template.Labels))
		if selected && !slices.Contains(term.MatchLabelKeys, appsv1.DefaultDeploymentUniqueLabelKey) {
			return true
		}
	}
	return false
}

// isUnblocked reports whether a rollout of this number of replicas with maxUnavailable 1 has not finished.
func isUnblocked(live, shaped *appsv1.Deployment) bool {
	update := live.Spec.Strategy.RollingUpdate
	return ptr.Equal(live.Spec.Replicas, shaped.Spec.Replicas) && update != nil && update.MaxUnavailable != nil &&
		*update.MaxUnavailable == intstr.FromInt32(1) && !RolledOut(live)
}
