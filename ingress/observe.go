// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
)

// Observe returns the state of the router after the intent was applied.
func Observe(in Inputs) patch.Result {
	if in.IngressController == nil {
		return rollingOut("The default IngressController is being patched")
	}
	switch pinned, err := isPinned(in.IngressController.Spec.NodePlacement); {
	case err != nil && !in.ForceConflicts:
		return *patch.Invalid(ErrNodeSelector)
	case !pinned:
		return rollingOut("The default IngressController is being patched")
	case in.Router == nil:
		return rollingOut("The default IngressController is pinned; waiting for the ingress operator to make the router Deployment")
	case !placed(in.Router):
		return rollingOut("The default IngressController is pinned; waiting for the ingress operator to pin the router Deployment")
	case !workload.RolledOut(in.Router):
		return incomplete(in)
	}
	message := "The router is pinned to the control plane"
	if in.Cluster != nil {
		if _, disagree := routerPool(*in.Cluster, in.defaultPlacement(), in.Placement); disagree {
			message += disagreement(in)
		}
		message += in.Cluster.UnknownValues()
	}
	return patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: message}
}

func rollingOut(message string) patch.Result {
	return patch.Result{State: patch.Progressing, Reason: ReasonRouterRollingOut, Message: message}
}

func incomplete(in Inputs) patch.Result {
	status, want := in.Router.Status, ptr.Deref(in.Router.Spec.Replicas, 1)
	switch seen := status.ObservedGeneration >= in.Router.Generation; {
	case in.Router.Spec.Paused:
		return rollingOut("The rollout of the router is paused; resume it with oc rollout resume")
	case workload.RolloutStuck(in.Router) && !asManyAsFit(in):
		message := "The rollout of the router does not finish and no pod is available; look at the events of its pods"
		if status.AvailableReplicas > 0 {
			message = "The rollout of the router does not finish, other pods still serve; look at the events of its pods"
		}
		return patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: message}
	case seen && status.UpdatedReplicas == want && status.Replicas == want:
		return rollingOut("Not every pod of the router on the control plane is available; if one stays Pending, look at its events")
	}
	return rollingOut("The router on the control plane is rolling out; if a pod stays Pending, look at its events")
}

// asManyAsFit reports whether a person set more replicas than the control plane has nodes, and as many as fit run. That
// rollout never finishes.
func asManyAsFit(in Inputs) bool {
	if in.Cluster == nil {
		return false
	}
	fit := pinnedReplicas(*in.Cluster)
	return ptr.Deref(in.Router.Spec.Replicas, 1) > fit && in.Router.Status.UpdatedReplicas > 0 && in.Router.Status.AvailableReplicas >= fit
}

// placed reports whether the router is pinned. An operator may add labels and tolerations of its own.
func placed(router *appsv1.Deployment) bool {
	want, pod := pinnedPlacement(), router.Spec.Template.Spec
	missing := func(t corev1.Toleration) bool {
		return !slices.ContainsFunc(pod.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) })
	}
	return labels.SelectorFromSet(want.NodeSelector.MatchLabels).Matches(labels.Set(pod.NodeSelector)) &&
		!slices.ContainsFunc(want.Tolerations, missing)
}
