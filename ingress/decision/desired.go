// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// Decision is what to do with the default IngressController.
type Decision struct {
	// IngressController is never released while inputs are missing or unreadable. Its Result explains a missing intent or
	// a missing part of it; nil when there is nothing to report.
	IngressController patch.Step
}

// Decide pins the default IngressController to the control plane where the router belongs there, so that it does not
// move to workers that are added later (R-ING-3), and releases it everywhere else. Each call returns a new apply
// configuration.
func Decide(in Inputs) Decision {
	switch result, policy := Checks().Run(in); {
	case result != nil && policy == patch.ReleaseFields:
		return release(in, result)
	case result != nil:
		return decided(patch.Step{Result: result})
	}
	replicas := pinnedReplicas(*in.Cluster)
	intent := operatorv1ac.IngressController(ingress.IngressControllerName, ingress.IngressControllerNamespace).WithSpec(operatorv1ac.IngressControllerSpec())
	if placement := placementIntent(in); placement != nil {
		intent.Spec.WithNodePlacement(placement)
	}

	owners, err := replicasOwners(in.IngressController, replicas)
	switch {
	case err != nil:
		return decided(patch.Step{Result: patch.Invalid(err)})
	case len(owners) > 0 && !in.ForceConflicts:
		// Another number of routers does not conflict with pinning them.
		result := patch.OwnedByOther(FieldReplicas, owners...)
		return decided(patch.Step{Intent: intent, Result: &result})
	}
	intent.Spec.WithReplicas(replicas)
	return decided(patch.Step{Intent: intent})
}

func decided(step patch.Step) Decision { return Decision{IngressController: step} }

func pinnedReplicas(cluster topology.Cluster) int32 {
	return topology.Replicas(cluster.Governing(topology.ControlPlanePool))
}

// otherPin returns the managers of a placement that is not the module's, but pins the router to the control plane too,
// for example by more labels. It stays, also without tolerations: Observe reports what it lacks.
func otherPin(in Inputs) []string {
	live := in.IngressController.Spec.NodePlacement
	selector, err := ingress.NodeSelector(live)
	if same, _ := isPinned(live); err != nil || same || in.ForceConflicts || ingress.SelectedPool(selector, "") != topology.ControlPlanePool {
		return nil
	}
	others, _ := ownership.Others(in.IngressController, FieldNodePlacement, FieldOwner) // unreadable ones are an error of the checks
	return others
}

// placementIntent returns the module's part of the placement. Of another pin these are tolerations that it set before.
func placementIntent(in Inputs) *operatorv1ac.NodePlacementApplyConfiguration {
	if len(otherPin(in)) == 0 {
		return pinnedPlacementIntent(in.IngressController.Spec.NodePlacement)
	}
	managers, _ := ownership.Managers(in.IngressController, FieldNodePlacement+".tolerations")
	if !slices.Contains(managers, FieldOwner) {
		return nil
	}
	return operatorv1ac.NodePlacement().WithTolerations(ingress.PinnedPlacement().Tolerations...)
}

// pinnedPlacementIntent keeps the form of a live selector that selects the same nodes: another form would be a
// conflict.
func pinnedPlacementIntent(live *operatorv1.NodePlacement) *operatorv1ac.NodePlacementApplyConfiguration {
	pinned := ingress.PinnedPlacement()
	form := pinned.NodeSelector
	if selector, err := ingress.NodeSelector(live); err == nil && maps.Equal(selector, form.MatchLabels) {
		form = live.NodeSelector
	}
	selector := metav1ac.LabelSelector().WithMatchLabels(form.MatchLabels)
	for _, expression := range form.MatchExpressions {
		selector.WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(expression.Key).WithOperator(expression.Operator).WithValues(expression.Values...))
	}
	return operatorv1ac.NodePlacement().WithNodeSelector(selector).WithTolerations(pinned.Tolerations...)
}

// isPinned reports whether a placement equals pinnedPlacement, in any form of its selector. Error: ErrNodeSelector.
func isPinned(placement *operatorv1.NodePlacement) (bool, error) {
	selector, err := ingress.NodeSelector(placement)
	if err != nil || placement == nil {
		return false, err
	}
	pinned := ingress.PinnedPlacement()
	return maps.Equal(selector, pinned.NodeSelector.MatchLabels) && equality.Semantic.DeepEqual(placement.Tolerations, pinned.Tolerations), nil
}

// release releases the fields (R-SNO-6) and restores their values, except for a number of routers that does not match
// the topology: the stock operator would not correct it (U-ING-2, U-ING-12).
func release(in Inputs, result *patch.Result) Decision {
	step := patch.Step{Result: result, Release: true}
	if in.Cluster == nil {
		return decided(step)
	}
	want := strconv.Itoa(int(replicasWithout(in)))
	// After a change of the topology any number may be stale; after an opt-out only one that this module has set.
	stale := func(manager string) bool { return result.State == patch.NotNeeded || manager == ReleasedManager }
	step.Restore = func(r patch.Replaced) bool {
		return r.Field != FieldReplicas || !stale(r.Manager) || string(r.Value) == want
	}
	if leavesWrongReplicas(in.IngressController, step.Restore, stale, want) {
		step.Leave = []patch.Replaced{{Field: FieldReplicas, Manager: ReleasedManager, Value: json.RawMessage(want)}}
	}
	return decided(step)
}

// leavesWrongReplicas reports whether a release would leave a stale number of routers, or remove the number.
func leavesWrongReplicas(ic *operatorv1.IngressController, restore func(patch.Replaced) bool, stale func(manager string) bool, want string) bool {
	managers, err := ownership.Managers(ic, FieldReplicas)
	if err != nil || ic.Spec.Replicas == nil || !slices.Contains(managers, FieldOwner) {
		return false
	}
	if len(managers) > 1 { // the live value stays
		decided := func(m string) bool { return m != FieldOwner && (!slices.Contains(ReplicasManagers(), m) || !stale(m)) }
		return strconv.Itoa(int(*ic.Spec.Replicas)) != want && !slices.ContainsFunc(managers, decided)
	}
	replaced, err := patch.ReadReplaced(ic, ingress.Name)
	if err != nil {
		return false // the release fails for such an object
	}
	return slices.ContainsFunc(replaced, func(r patch.Replaced) bool { return r.Field == FieldReplicas && !restore(r) })
}

// replicasWithout returns the number of routers for the pool where they run without this module's placement.
func replicasWithout(in Inputs) int32 {
	var selector map[string]string
	if others, err := ownership.Others(in.IngressController, FieldNodePlacement, FieldOwner); err == nil && len(others) > 0 {
		selector, _ = ingress.NodeSelector(in.IngressController.Spec.NodePlacement) // an unreadable one counts as the default placement
	}
	return topology.Replicas(in.Cluster.Governing(in.Cluster.PoolFor(ingress.SelectedPool(selector, in.defaultPlacement()))))
}
