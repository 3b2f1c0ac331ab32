package ingress

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

// Decision is what to do with the default IngressController.
type Decision struct {
	// Intent is what to apply, or nil.
	Intent *operatorv1ac.IngressControllerApplyConfiguration
	// Release is whether to release the object. It is never set while the inputs are incomplete or cannot be read.
	Release bool
	// RestoreReplaced reports, on release, whether a value that was replaced is restored. Nil restores every value.
	RestoreReplaced func(patch.Replaced) bool
	// Leave lists the values that a release leaves behind, for ReleasedManager, where the value from before no longer fits: without
	// spec.replicas nothing could read /scale.
	Leave []patch.Replaced
	// Result is why there is no intent, or why a part of it is missing; nil when there is nothing to report before applying.
	Result *patch.Result
}

// Decide pins the default IngressController to the control plane where the router belongs there, so that it does not float to workers
// that are added later (R-ING-3), and releases it everywhere else. Every call builds a new apply configuration, because the API server's
// answer is written into the one that was sent.
func Decide(in Inputs) Decision {
	switch result, ours := Checks().Run(in); {
	case result != nil && ours == patch.ReleaseFields:
		return release(in, result)
	case result != nil:
		return Decision{Result: result}
	}
	replicas := pinnedReplicas(*in.Cluster)
	intent := operatorv1ac.IngressController(IngressControllerName, IngressControllerNamespace).
		WithSpec(operatorv1ac.IngressControllerSpec().WithNodePlacement(pinnedPlacementIntent(in.IngressController.Spec.NodePlacement)))

	owners, err := replicasOwners(in.IngressController, replicas)
	switch {
	case err != nil:
		return Decision{Result: patch.Invalid(err)}
	case len(owners) > 0 && !in.ForceConflicts:
		// A person who wants another number of routers did not ask for floating ones.
		result := patch.OwnedByOther(FieldReplicas, owners...)
		return Decision{Intent: intent, Result: &result}
	}
	intent.Spec.WithReplicas(replicas)
	return Decision{Intent: intent}
}

// pinnedReplicas follows the topology of the pool where the pods run.
func pinnedReplicas(cluster topology.Cluster) int32 {
	return topology.Replicas(cluster.Governing(topology.ControlPlanePool))
}

// pinnedPlacement has the tolerations that a router needs to be schedulable on a control plane that has day-1 workers (U-ING-5).
func pinnedPlacement() *operatorv1.NodePlacement {
	placement := topology.PlacementOf(topology.ControlPlanePool)
	return &operatorv1.NodePlacement{
		NodeSelector: &metav1.LabelSelector{MatchLabels: placement.NodeSelector()},
		Tolerations:  workload.Tolerations(placement),
	}
}

// pinnedPlacementIntent is pinnedPlacement, but keeps the form of a live selector that selects the same nodes: equal values are owned by
// both managers, another form would be a conflict.
func pinnedPlacementIntent(live *operatorv1.NodePlacement) *operatorv1ac.NodePlacementApplyConfiguration {
	pinned := pinnedPlacement()
	form := pinned.NodeSelector
	if selector, err := nodeSelector(live); err == nil && maps.Equal(selector, form.MatchLabels) {
		form = live.NodeSelector
	}
	selector := metav1ac.LabelSelector().WithMatchLabels(form.MatchLabels)
	for _, expression := range form.MatchExpressions {
		selector.WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(expression.Key).WithOperator(expression.Operator).WithValues(expression.Values...))
	}
	return operatorv1ac.NodePlacement().WithNodeSelector(selector).WithTolerations(pinned.Tolerations...)
}

// isPinned reports whether a placement is pinnedPlacement, in any form of its selector. Error: ErrNodeSelector.
func isPinned(placement *operatorv1.NodePlacement) (bool, error) {
	selector, err := nodeSelector(placement)
	if err != nil || placement == nil {
		return false, err
	}
	pinned := pinnedPlacement()
	return maps.Equal(selector, pinned.NodeSelector.MatchLabels) && equality.Semantic.DeepEqual(placement.Tolerations, pinned.Tolerations), nil
}

// release releases the fields (R-SNO-6). The object is then as it was before, except for a number of routers that does not fit: the stock
// operator would not correct it (U-ING-2, U-ING-12).
func release(in Inputs, result *patch.Result) Decision {
	decision := Decision{Result: result, Release: true}
	if in.Cluster == nil {
		return decision
	}
	fits := strconv.Itoa(int(replicasWithout(in)))
	// Where the topology ended the need, any number may be stale; where a person opted out, only a number that this module left behind.
	stale := func(manager string) bool { return result.State == patch.NotNeeded || manager == ReleasedManager }
	decision.RestoreReplaced = func(r patch.Replaced) bool {
		return r.Field != FieldReplicas || !stale(r.Manager) || string(r.Value) == fits
	}
	if unfitReplicas(in.IngressController, decision.RestoreReplaced, stale, fits) {
		decision.Leave = []patch.Replaced{{Field: FieldReplicas, Manager: ReleasedManager, Value: json.RawMessage(fits)}}
	}
	return decision
}

// unfitReplicas reports whether a release would leave a number of routers that does not fit, or none where there was one.
func unfitReplicas(ic *operatorv1.IngressController, keep func(patch.Replaced) bool, stale func(manager string) bool, fits string) bool {
	managers, err := ownership.Managers(ic, FieldReplicas)
	if err != nil || ic.Spec.Replicas == nil || !slices.Contains(managers, FieldOwner) {
		return false
	}
	if len(managers) > 1 { // the live value stays, because another manager owns it too
		decided := func(m string) bool { return m != FieldOwner && (!slices.Contains(ReplicasManagers(), m) || !stale(m)) }
		return strconv.Itoa(int(*ic.Spec.Replicas)) != fits && !slices.ContainsFunc(managers, decided)
	}
	replaced, err := patch.ReadReplaced(ic.Annotations, Name)
	if err != nil {
		return false // the release refuses such an object
	}
	return slices.ContainsFunc(replaced, func(r patch.Replaced) bool { return r.Field == FieldReplicas && !keep(r) })
}

// replicasWithout returns the number of routers that fits where the stock operator runs them without this module's placement.
func replicasWithout(in Inputs) int32 {
	var selector map[string]string
	if others, err := ownership.Others(in.IngressController, FieldNodePlacement, FieldOwner); err == nil && len(others) > 0 {
		selector, _ = nodeSelector(in.IngressController.Spec.NodePlacement) // without an answer the default placement is the best guess
	}
	return topology.Replicas(in.Cluster.Governing(in.Cluster.PoolFor(poolOf(selector, in.defaultPlacement()))))
}
