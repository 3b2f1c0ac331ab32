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

// Decision is what is to become of the default IngressController.
type Decision struct {
	// Intent is what to apply; nil for nothing, and Result says why.
	Intent *operatorv1ac.IngressControllerApplyConfiguration
	// Release says that the module lets go of the object. It is never set while something is unknown or cannot be read:
	// then everything stays as it is.
	Release bool
	// KeepReplaced is called for a value that was taken over, when the module lets go: it goes back unless the topology has made it
	// wrong. Nil restores everything.
	KeepReplaced func(patch.Replaced) bool
	// Leave lists what letting go leaves behind where the value that was there before no longer fits: a number of replicas, in the name of
	// ReleasedManager. Without it the field would be absent, and nothing that scales the router could read it.
	Leave []patch.Replaced
	// Result is why there is no intent, or what stands in the way of a part of it; nil when there is nothing to say before
	// applying.
	Result *patch.Result
}

// Decide is the whole decision over the default IngressController: pinned to the control plane where the router belongs
// there, so that it does not float to workers that are added later (R-ING-3), and released everywhere else. It is pure,
// and builds a new apply configuration on every call, because one that was sent comes back filled with what the API
// server knows.
func Decide(in Inputs) Decision {
	if result := Checks().Run(in); result != nil {
		return letGo(in, result)
	}
	replicas := pinnedReplicas(*in.Cluster)
	intent := operatorv1ac.IngressController(IngressControllerName, IngressControllerNamespace).
		WithSpec(operatorv1ac.IngressControllerSpec().WithNodePlacement(pinnedPlacementIntent(in.IngressController.Spec.NodePlacement)))

	owners, err := replicasOwners(in.IngressController, replicas)
	switch {
	case err != nil:
		return letGo(in, &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: sentence(err)})
	case len(owners) > 0 && !in.ForceConflicts:
		// The placement is still ours to set: a person who wants another number of routers did not ask for floating ones.
		result := patch.OwnedByOther(FieldReplicas, owners...)
		return Decision{Intent: intent, Result: &result}
	}
	intent.Spec.WithReplicas(replicas)
	return Decision{Intent: intent}
}

// pinnedReplicas follows the topology of the pool where the pods run: one control-plane node, one router.
func pinnedReplicas(cluster topology.Cluster) int32 {
	return topology.Replicas(cluster.Governing(topology.ControlPlanePool))
}

func pinnedPlacement() *operatorv1.NodePlacement {
	placement := topology.PlacementOf(topology.ControlPlanePool)
	return &operatorv1.NodePlacement{
		NodeSelector: &metav1.LabelSelector{MatchLabels: placement.NodeSelector()},
		Tolerations:  workload.Tolerations(placement),
	}
}

// pinnedPlacementIntent is pinnedPlacement, with the selector in the form that is there already if that selects the same nodes: equal
// values are owned by both, and another form would be a conflict about nothing.
func pinnedPlacementIntent(live *operatorv1.NodePlacement) *operatorv1ac.NodePlacementApplyConfiguration {
	placement := topology.PlacementOf(topology.ControlPlanePool)
	selector := metav1ac.LabelSelector().WithMatchLabels(placement.NodeSelector())
	if have, err := nodeSelector(live); err == nil && maps.Equal(have, placement.NodeSelector()) {
		selector = metav1ac.LabelSelector().WithMatchLabels(live.NodeSelector.MatchLabels)
		for _, expression := range live.NodeSelector.MatchExpressions {
			selector.WithMatchExpressions(metav1ac.LabelSelectorRequirement().
				WithKey(expression.Key).WithOperator(expression.Operator).WithValues(expression.Values...))
		}
	}
	return operatorv1ac.NodePlacement().WithNodeSelector(selector).WithTolerations(workload.Tolerations(placement)...)
}

// isPinned tells whether a placement is the one that the patch sets, in whatever form its selector is written.
func isPinned(placement *operatorv1.NodePlacement) (bool, error) {
	want := topology.PlacementOf(topology.ControlPlanePool)
	selector, err := nodeSelector(placement)
	if err != nil || placement == nil {
		return false, err
	}
	return maps.Equal(selector, want.NodeSelector()) &&
		equality.Semantic.DeepEqual(placement.Tolerations, workload.Tolerations(want)), nil
}

// letGo releases the fields (R-SNO-6), unless the result only means that nothing can be said. The object is then as it
// was before, but for a number of replicas that no longer fits: the stock operator wrote it once, at creation, and will
// not correct it (U-ING-2, U-ING-12).
func letGo(in Inputs, result *patch.Result) Decision {
	decision := Decision{Result: result}
	switch result.State {
	case patch.NotNeeded, patch.OptedOut, patch.Blocked:
		decision.Release = true
	case patch.InForce, patch.WouldChange, patch.Progressing, patch.Waiting, patch.Reverted, patch.Failed:
		return decision
	}
	if in.Cluster == nil {
		return decision // nobody knows what fits
	}
	fits := strconv.Itoa(int(replicasWithout(in)))
	// What the topology ended is stale; where a person keeps the module away, only a number that was its own.
	stale := func(manager string) bool { return result.State == patch.NotNeeded || manager == ReleasedManager }
	decision.KeepReplaced = func(r patch.Replaced) bool {
		return r.Field != FieldReplicas || !stale(r.Manager) || string(r.Value) == fits
	}
	if unfitReplicas(in.IngressController, decision.KeepReplaced, stale, fits) {
		decision.Leave = []patch.Replaced{{Field: FieldReplicas, Manager: ReleasedManager, Value: json.RawMessage(fits)}}
	}
	return decision
}

// unfitReplicas tells whether letting go would leave a number of replicas that does not fit, or none although there was one.
func unfitReplicas(ic *operatorv1.IngressController, keep func(patch.Replaced) bool, stale func(manager string) bool, fits string) bool {
	managers, err := ownership.Managers(ic, FieldReplicas)
	if err != nil || ic.Spec.Replicas == nil || !slices.Contains(managers, FieldOwner) {
		return false
	}
	if others := slices.DeleteFunc(managers, func(m string) bool { return m == FieldOwner }); len(others) > 0 {
		// Co-owned, so the live value stays.
		decided := func(m string) bool { return !slices.Contains(ReplicasManagers(), m) || !stale(m) }
		return strconv.Itoa(int(*ic.Spec.Replicas)) != fits && !slices.ContainsFunc(others, decided)
	}
	replaced, err := patch.ReadReplaced(ic.Annotations, Name)
	if err != nil {
		return false // letting go refuses such an object
	}
	// Without a remembered value there was none before.
	return slices.ContainsFunc(replaced, func(r patch.Replaced) bool { return r.Field == FieldReplicas && !keep(r) })
}

// replicasWithout is the number of routers that fits where the stock operator runs them without this module's placement.
func replicasWithout(in Inputs) int32 {
	var selector map[string]string
	if others, err := ownership.Others(in.IngressController, FieldNodePlacement, FieldOwner); err == nil && len(others) > 0 {
		// One that is no map places no router; the default placement is then the best guess.
		selector, _ = nodeSelector(in.IngressController.Spec.NodePlacement)
	}
	return topology.Replicas(in.Cluster.Governing(in.Cluster.PoolFor(poolOf(selector, in.defaultPlacement()))))
}
