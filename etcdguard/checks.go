package etcdguard

import (
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// Checks are the preconditions for writing or removing the guard, in order.
func Checks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: func(in Inputs) *patch.Result { return invalid(in.Validate()) }},
		{Name: "TopologyKnown", Evaluate: func(in Inputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }},
		// The owner of a guard whose managedFields cannot be read would be a guess.
		{Name: "Readable", Evaluate: func(in Inputs) *patch.Result {
			_, inNumbers := in.numbers(strength{})
			_, inClaim := in.claim()
			return invalid(errors.Join(inNumbers, inClaim))
		}},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			out := slices.ContainsFunc(in.objects(), func(o object) bool { return o.name != PodsBudgetName && patch.OptsOut(o.GetAnnotations(), Name) })
			return when(out, patch.OptedOut, patch.ReasonOptedOut,
				"The annotation "+patch.OptOutAnnotation+" keeps this module away; remove it to have the guard follow the topology")
		}},
		{Name: "EtcdHere", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			return when(in.mode() == configv1.ExternalTopologyMode, patch.NotNeeded, patch.ReasonNotNeeded,
				"The control plane is External, so there is no etcd to guard in this cluster")
		}},
		// On a single node the etcd operator removes its own guards, but not those of earlier releases.
		{Name: "OperatorGuards", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			return when(guarded(in.mode()) && in.operatorGuards(), patch.NotNeeded, patch.ReasonNotNeeded,
				"The etcd operator has its own guard on every node"+in.Cluster.UnknownValues())
		}},
		{Name: "NoOperatorOwns", OwnedFields: patch.ReleaseFields, Evaluate: checkNoOperatorOwns},
		// The entries of others affect the upgrades of the whole cluster, so they are respected also with --force-conflicts.
		{Name: "OverridesFree", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			c, err := in.claim()
			if err != nil || !in.mayBeStatic() {
				return invalid(err)
			}
			return c.Blocked(OverridesSubject)
		}},
		{Name: "ClusterVersionThere", Evaluate: func(in Inputs) *patch.Result {
			return when(in.ClusterVersion == nil && in.fromRelease(), patch.Waiting, patch.ReasonWaitingForObject,
				"The cluster-version-operator owns the guard, but there is no ClusterVersion in which to claim it; nothing is changed until there is one")
		}},
		{Name: "NodesKnown", Evaluate: func(in Inputs) *patch.Result {
			return when(in.Nodes == nil && guarded(in.mode()), patch.Waiting, ReasonWaitingForNodes,
				"Waiting for the control-plane nodes to be read; nothing is changed until then")
		}},
		{Name: "Adoptable", Evaluate: checkAdoptable},
		{Name: "FieldsFree", Evaluate: checkFieldsFree},
	}
}

func invalid(err error) *patch.Result {
	if err == nil {
		return nil
	}
	return patch.Invalid(err)
}

func when(is bool, state patch.State, reason, message string) *patch.Result {
	if !is {
		return nil
	}
	return &patch.Result{State: state, Reason: reason, Message: message}
}

// checkNoOperatorOwns leaves a guard alone that an earlier etcd operator writes. On a single node that operator neither writes nor removes it.
func checkNoOperatorOwns(in Inputs) *patch.Result {
	stock := in.stockOwners()
	if !guarded(in.mode()) || in.ForceConflicts || len(stock) == 0 || in.Nodes == nil {
		return nil
	}
	want, _ := in.wantedStrength()
	faults := in.faults(want)
	if len(faults) > 0 {
		return when(true, patch.Blocked, patch.ReasonFieldOwnedByOther, fmt.Sprintf(
			"The guard is owned by %s and %s; check that this operator runs, restart or update it, or start with --force-conflicts",
			patch.Quoted(stock), listed(faults)))
	}
	return when(true, patch.NotNeeded, patch.ReasonNotNeeded, "The guard of the etcd operator is right")
}

// checkAdoptable refuses another Deployment with the guard's name: its selector cannot be changed, and its other containers would keep running.
func checkAdoptable(in Inputs) *patch.Result {
	if in.Deployment == nil || !guarded(in.mode()) {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(in.Deployment.Spec.Selector)
	is := err == nil && selector.Matches(labels.Set(guardLabels())) && imageOf(in.Deployment) != ""
	return when(!is, patch.Failed, patch.ReasonInvalid, fmt.Sprintf(
		"The Deployment is not a guard: its selector must match %s, and it must have a container %q; delete it to have it recreated",
		labels.FormatLabels(guardLabels()), containerName))
}

// checkFieldsFree leaves the guard alone where another client, neither the release nor an etcd operator, owns a number that would have to
// change. On a single node the guard is removed, so each of its numbers counts.
func checkFieldsFree(in Inputs) *patch.Result {
	if in.ForceConflicts {
		return nil
	}
	want, _ := in.wantedStrength()
	numbers, err := in.numbers(want)
	for _, number := range numbers {
		owners := slices.DeleteFunc(number.owners, func(m string) bool {
			return m == overrides.ClusterVersionOperator || m == patch.ReleasedManager(Name) || slices.Contains(stockManagers, m)
		})
		if len(owners) > 0 && (!guarded(in.mode()) || !number.fits) {
			return ptr.To(patch.OwnedByOther(number.field, owners...))
		}
	}
	return invalid(err)
}
