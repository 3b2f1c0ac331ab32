package ingress

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

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
		return patch.Result{State: patch.Progressing, Reason: ReasonRouterRollingOut,
			Message: "The router is moving to the control plane; if it stays Pending, look at the events of its pods"}
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
