package ingress

import (
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// Checks are the preconditions of the patch, in order. The first that has something to say ends the decision.
func Checks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "Exists", Evaluate: checkExists},
		{Name: "OptedOut", Evaluate: checkOptedOut},
		{Name: "TopologyKnown", Evaluate: checkTopologyKnown},
		{Name: "ControlPlaneInCluster", Evaluate: checkControlPlaneInCluster},
		{Name: "RouterOnControlPlane", Evaluate: checkRouterOnControlPlane},
		{Name: "PlacementFree", Evaluate: checkPlacementFree},
	}
}

func checkValid(in Inputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: "The inputs are not those of a cluster: " + err.Error()}
	}
	return nil
}

func checkExists(in Inputs) *patch.Result {
	switch {
	case in.IngressController == nil:
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "There is no default IngressController; the ingress operator makes one"}
	case in.IngressController.DeletionTimestamp != nil:
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "The default IngressController is being deleted; the ingress operator makes a new one"}
	}
	return nil
}

func checkOptedOut(in Inputs) *patch.Result {
	if !patch.OptsOut(in.IngressController.Annotations, Name) {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have the router pinned by topology"}
}

func checkTopologyKnown(in Inputs) *patch.Result {
	return patch.TopologyKnown(in.Cluster)
}

func checkControlPlaneInCluster(in Inputs) *patch.Result {
	if in.Cluster.ControlPlane.Mode != configv1.ExternalTopologyMode {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonExternalControlPlane,
		Message: "The control plane is external: there is no control-plane node to pin the router to"}
}

func checkRouterOnControlPlane(in Inputs) *patch.Result {
	pool, disagree := routerPool(*in.Cluster, in.defaultPlacement(), in.Placement)
	if pool == topology.ControlPlanePool {
		return nil
	}
	message := "The infrastructure topology is highly available: the router belongs to the workers"
	if disagree {
		message = "The router belongs to the workers" + disagreement(in)
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: message + in.Cluster.UnknownValues()}
}

// disagreement says which signal won and how to let the other one decide. Nobody chose Workers: the ingress operator
// writes it wherever it finds nothing (U-ING-3), so that it disagrees on every single node in a cloud.
func disagreement(in Inputs) string {
	placement := in.defaultPlacement()
	workers := placement == configv1.DefaultPlacementWorkers
	if in.Placement == PlacementFromDefaultPlacement {
		decided := "; defaultPlacement decided, which is " + string(placement)
		if workers {
			decided += " where nobody chose"
		}
		return decided + "; the infrastructure topology says otherwise (--placement=topology lets it decide)"
	}
	decided := "; the infrastructure topology decided, defaultPlacement is " + string(placement)
	if workers {
		decided += ", as wherever nobody chose"
	}
	return decided + " (--placement=defaultPlacement lets it decide)"
}

// checkPlacementFree leaves a router alone that somebody else placed (R-ING-4, R-SNO-5). A value that is equal to ours
// is no obstacle: both then own it.
func checkPlacementFree(in Inputs) *patch.Result {
	if in.ForceConflicts {
		return nil
	}
	if in.IngressController.Spec.NodePlacement == nil {
		return nil
	}
	others, err := ownership.Others(in.IngressController, FieldNodePlacement, FieldOwner)
	if err != nil {
		return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: sentence(err)}
	}
	if len(others) == 0 {
		return nil
	}
	switch same, err := isPinned(in.IngressController.Spec.NodePlacement); {
	case err != nil:
		return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: sentence(ErrNodeSelector) + "; it belongs to " + strings.Join(others, ", ")}
	case same:
		return nil
	}
	result := patch.OwnedByOther(FieldNodePlacement, others...)
	return &result
}

// replicasOwners lists who, beside us, the stock operator's creation-time default and a number that we left behind, owns spec.replicas with another value
// than the topology asks for.
func replicasOwners(ic *operatorv1.IngressController, want int32) ([]string, error) {
	if ic.Spec.Replicas == nil || *ic.Spec.Replicas == want {
		return nil, nil
	}
	return ownership.Others(ic, FieldReplicas, slices.Concat([]string{FieldOwner}, ReplicasManagers())...)
}

func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
