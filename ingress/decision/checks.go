// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// Checks returns the preconditions of the patch, in order: the first that returns a result ends the decision.
func Checks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "Exists", Evaluate: checkExists},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: checkOptedOut},
		{Name: "TopologyKnown", Evaluate: func(in Inputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }},
		{Name: "ControlPlaneInCluster", OwnedFields: patch.ReleaseFields, Evaluate: checkControlPlaneInCluster},
		{Name: "RouterOnControlPlane", OwnedFields: patch.ReleaseFields, Evaluate: checkRouterOnControlPlane},
		{Name: "PlacementFree", OwnedFields: patch.ReleaseFields, Evaluate: checkPlacementFree},
	}
}

func checkValid(in Inputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return patch.Invalid(err)
	}
	return nil
}

func checkExists(in Inputs) *patch.Result {
	waiting := patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject}
	switch {
	case in.IngressController == nil:
		waiting.Message = "There is no default IngressController; the ingress operator makes one"
	case in.IngressController.DeletionTimestamp != nil:
		waiting.Message = "The default IngressController is being deleted; the ingress operator makes a new one"
	default:
		return nil
	}
	return &waiting
}

func checkOptedOut(in Inputs) *patch.Result {
	if !patch.OptsOut(in.IngressController, ingress.Name) {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have the router pinned by topology"}
}

func checkControlPlaneInCluster(in Inputs) *patch.Result {
	if in.Cluster.ControlPlane.Mode != configv1.ExternalTopologyMode {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonExternalControlPlane,
		Message: "The control plane is external: there is no control-plane node to pin the router to"}
}

func checkRouterOnControlPlane(in Inputs) *patch.Result {
	pool, disagree, _ := ingress.RouterPool(*in.Cluster, in.defaultPlacement(), in.Placement)
	if pool == topology.ControlPlanePool {
		return nil
	}
	message := "The infrastructure topology is highly available: the router belongs to the workers"
	if disagree {
		message = "The router belongs to the workers" + disagreement(in)
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: message + in.Cluster.UnknownValues()}
}

// disagreement returns the end of a message: which signal decided, and which flag selects the other one. The ingress
// operator defaults to Workers (U-ING-3), so the two disagree on every single node in a cloud.
func disagreement(in Inputs) string {
	placement := string(in.defaultPlacement())
	if in.defaultPlacement() == configv1.DefaultPlacementWorkers {
		placement += ", the ingress operator's default"
	}
	if in.Placement == ingress.PlacementFromDefaultPlacement {
		return "; defaultPlacement decided, which is " + placement + "; the infrastructure topology disagrees (--placement=topology lets it decide)"
	}
	return "; the infrastructure topology decided, defaultPlacement is " + placement + " (--placement=defaultPlacement lets it decide)"
}

// checkPlacementFree returns a result where another manager owns a placement elsewhere (R-ING-4, R-SNO-5).
func checkPlacementFree(in Inputs) *patch.Result {
	if in.ForceConflicts || in.IngressController.Spec.NodePlacement == nil {
		return nil
	}
	others, err := ownership.Others(in.IngressController, FieldNodePlacement, FieldOwner)
	if err != nil {
		return patch.Invalid(err)
	}
	if len(others) == 0 {
		return nil
	}
	switch same, err := isPinned(in.IngressController.Spec.NodePlacement); {
	case err != nil:
		return patch.Invalid(fmt.Errorf("%w; it belongs to %s", ingress.ErrNodeSelector, patch.Quoted(others)))
	case same || len(otherPin(in)) > 0:
		return nil
	}
	result := patch.OwnedByOther(FieldNodePlacement, others...)
	return &result
}

func replicasOwners(ic *operatorv1.IngressController, want int32) ([]string, error) {
	if ic.Spec.Replicas == nil || *ic.Spec.Replicas == want {
		return nil, nil
	}
	return ownership.Others(ic, FieldReplicas, append(ReplicasManagers(), FieldOwner)...)
}
