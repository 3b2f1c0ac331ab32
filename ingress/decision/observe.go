// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/workload"
)

// Observe returns the state of the router after the intent was applied.
func Observe(in Inputs) patch.Result {
	if in.IngressController == nil {
		return rollingOut("The default IngressController is being patched")
	}
	switch pinned, err := isPinned(in.IngressController.Spec.NodePlacement); {
	case err != nil && !in.ForceConflicts:
		return *patch.Invalid(ingress.ErrNodeSelector)
	case !pinned && len(otherPin(in)) == 0:
		return rollingOut("The default IngressController is being patched")
	case in.Router == nil:
		return rollingOut("The default IngressController is pinned; waiting for the ingress operator to make the router Deployment")
	case !placed(in.Router, in.IngressController.Spec.NodePlacement):
		return rollingOut("The default IngressController is pinned; waiting for the ingress operator to pin the router Deployment")
	case !workload.RolledOut(in.Router):
		result := incomplete(in)
		result.Message += lacking(in)
		return result
	}
	message := "The router is pinned to the control plane" + lacking(in)
	if in.Cluster != nil {
		if _, disagree, _ := ingress.RouterPool(*in.Cluster, in.defaultPlacement(), in.Placement); disagree {
			message += disagreement(in)
		}
		message += in.Cluster.UnknownValues()
	}
	return patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: message}
}

// lacking returns the end of a message: what another manager's pin lacks.
func lacking(in Inputs) string {
	others := otherPin(in)
	if len(others) == 0 || workload.ToleratesControlPlane(in.IngressController.Spec.NodePlacement.Tolerations) {
		return ""
	}
	return "; " + FieldNodePlacement + " of " + patch.Quoted(others) + " does not tolerate the taint node-role.kubernetes.io/master:NoSchedule: " +
		"add that to its tolerations, or the router is Pending where the control plane has the taint, as with day-1 workers"
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

// placed reports whether the router follows the placement. An operator may add labels and tolerations of its own.
func placed(router *appsv1.Deployment, want *operatorv1.NodePlacement) bool {
	selector, err := ingress.NodeSelector(want)
	pod := router.Spec.Template.Spec
	missing := func(t corev1.Toleration) bool {
		return !slices.ContainsFunc(pod.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) })
	}
	return err == nil && labels.SelectorFromSet(selector).Matches(labels.Set(pod.NodeSelector)) && !slices.ContainsFunc(want.Tolerations, missing)
}
