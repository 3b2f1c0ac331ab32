package ingress

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
)

// Observe tells how the patch stands on a cluster where it is needed and on the object: whether the ingress operator made a
// router of it that runs where it should. Call it when the applied intent stands.
func Observe(in Inputs) patch.Result {
	want := pinnedPlacement()
	patching := patch.Result{State: patch.Progressing, Reason: ReasonRouterRollingOut, Message: "The default IngressController is being patched"}
	if in.IngressController == nil {
		return patching
	}
	switch pinned, err := isPinned(in.IngressController.Spec.NodePlacement); {
	case err != nil && !in.ForceConflicts:
		return patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: sentence(ErrNodeSelector)}
	case !pinned:
		return patching
	}
	switch router := in.Router; {
	case router == nil:
		return patch.Result{State: patch.Progressing, Reason: ReasonRouterRollingOut,
			Message: "The default IngressController is pinned; waiting for the ingress operator to make the router Deployment"}
	case !follows(router, want.NodeSelector.MatchLabels, want.Tolerations):
		return patch.Result{State: patch.Progressing, Reason: ReasonRouterRollingOut,
			Message: "The default IngressController is pinned; waiting for the ingress operator to pin the router Deployment"}
	case !workload.RolledOut(router):
		return rollingOut(in)
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

// rollingOut tells how a router that is placed as it should, and not complete, gets on. What it does not tell is where the pods are that the
// router had before: a Deployment does not know.
func rollingOut(in Inputs) patch.Result {
	status, want := in.Router.Status, ptr.Deref(in.Router.Spec.Replicas, 1)
	seen := status.ObservedGeneration >= in.Router.Generation
	progressing := patch.Result{State: patch.Progressing, Reason: ReasonRouterRollingOut}
	switch {
	case in.Router.Spec.Paused:
		progressing.Message = "The rollout of the router is paused; resume it with oc rollout resume"
	case workload.RolloutStuck(in.Router) && !asManyAsFit(in):
		message := "The rollout of the router does not finish and no pod is available; look at the events of its pods"
		if status.AvailableReplicas > 0 {
			message = "The rollout of the router does not finish, other pods still serve; look at the events of its pods"
		}
		return patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: message}
	case seen && status.UpdatedReplicas == want && status.Replicas == want:
		progressing.Message = "Not every pod of the router on the control plane is available; if one stays Pending, look at its events"
	default:
		progressing.Message = "The router on the control plane is rolling out; if a pod stays Pending, look at its events"
	}
	return progressing
}

// asManyAsFit tells whether a person asked for more routers than the control plane has nodes for, and as many as fit run. That never finishes,
// and it is the person's decision.
func asManyAsFit(in Inputs) bool {
	if in.Cluster == nil {
		return false
	}
	fit := pinnedReplicas(*in.Cluster)
	return ptr.Deref(in.Router.Spec.Replicas, 1) > fit && in.Router.Status.UpdatedReplicas > 0 && in.Router.Status.AvailableReplicas >= fit
}

// follows tells whether the router's pods are placed as the IngressController asks. An operator may add labels and
// tolerations of its own.
func follows(router *appsv1.Deployment, selector map[string]string, tolerations []corev1.Toleration) bool {
	pod := router.Spec.Template.Spec
	merged := maps.Clone(pod.NodeSelector)
	if merged == nil {
		return false
	}
	maps.Copy(merged, selector)
	if !maps.Equal(merged, pod.NodeSelector) {
		return false
	}
	for _, want := range tolerations {
		found := false
		for _, have := range pod.Tolerations {
			found = found || have.MatchToleration(&want)
		}
		if !found {
			return false
		}
	}
	return true
}
