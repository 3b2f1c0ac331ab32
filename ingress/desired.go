package ingress

import (
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
	// Unset lists fields that letting go removes altogether: creation-time defaults of the stock operator that no longer
	// fit the topology, so that the operator computes them afresh.
	Unset []string
	// KeepReplaced is called for a value that was taken over by force, when the module lets go: it goes back unless the
	// topology has made it wrong. Nil restores everything.
	KeepReplaced func(patch.Replaced) bool
	// Result is why there is no intent, or what stands in the way of a part of it; nil when there is nothing to say before
	// applying.
	Result *patch.Result
}

// Decide is the whole decision over the default IngressController. It is pure, and builds a new apply configuration on every
// call, because one that was sent comes back filled with what the API server knows.
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

// letGo gives the fields back, unless the result only means that nothing can be said. When it is the topology that ended the need, spec.replicas must not stay at a number that only
// fitted the old one: the stock operator wrote it once, at creation, and will not correct it (facts/upstream.md 1.2).
func letGo(in Inputs, result *patch.Result) Decision {
	decision := Decision{Result: result}
	switch result.State {
	case patch.NotNeeded, patch.OptedOut, patch.Blocked:
		decision.Release = true
	case patch.InForce, patch.WouldChange, patch.Progressing, patch.Waiting, patch.Reverted, patch.Failed:
		return decision
	}
	if result.State != patch.NotNeeded {
		return decision
	}
	fits := topology.Replicas(in.Cluster.Governing(topology.WorkerPool))
	decision.KeepReplaced = func(r patch.Replaced) bool {
		return r.Field != FieldReplicas || string(r.Value) == strconv.Itoa(int(fits))
	}
	if live := in.IngressController.Spec.Replicas; live != nil && *live != fits && ours(in.IngressController, FieldReplicas) {
		decision.Unset = []string{FieldReplicas}
	}
	return decision
}

func ours(ic *operatorv1.IngressController, field string) bool {
	managers, err := ownership.Managers(ic, field)
	return err == nil && slices.Contains(managers, FieldOwner)
}
