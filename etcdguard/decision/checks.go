// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// Checks are the preconditions for writing or removing the guard, in order.
func Checks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: func(in Inputs) *patch.Result { return invalid(in.Validate()) }},
		{Name: "TopologyKnown", Evaluate: func(in Inputs) *patch.Result { return patch.TopologyKnown(in.Cluster) }},
		{Name: "Readable", Evaluate: func(in Inputs) *patch.Result {
			_, fieldsErr := in.sizeFields(strength{})
			_, claimErr := in.claim()
			return invalid(errors.Join(fieldsErr, claimErr))
		}},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			out := slices.ContainsFunc(in.objects(), func(o object) bool { return o.name != etcdguard.PodsBudgetName && patch.OptsOut(o, etcdguard.Name) })
			return resultIf(out, patch.OptedOut, patch.ReasonOptedOut,
				"The annotation "+patch.OptOutAnnotation+" keeps this module away; remove it to have the guard follow the topology")
		}},
		{Name: "EtcdHere", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			return resultIf(in.mode() == configv1.ExternalTopologyMode, patch.NotNeeded, patch.ReasonNotNeeded,
				"The control plane is External, so there is no etcd to guard in this cluster")
		}},
		// On a single node the etcd operator does not remove the guards of earlier releases.
		{Name: "OperatorGuards", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			return resultIf(needsGuards(in.mode()) && in.operatorHasGuards(), patch.NotNeeded, patch.ReasonNotNeeded,
				"The etcd operator has its own guard on every node"+in.Cluster.UnknownValues())
		}},
		{Name: "NoOperatorOwns", OwnedFields: patch.ReleaseFields, Evaluate: checkNoOperatorOwns},
		// --force-conflicts does not change entries of others, because they affect upgrades of the whole cluster.
		{Name: "OverridesFree", OwnedFields: patch.ReleaseFields, Evaluate: func(in Inputs) *patch.Result {
			c, err := in.claim()
			if err != nil || !in.versionOperatorMayWrite() {
				return invalid(err)
			}
			return c.Blocked(OverridesSubject)
		}},
		{Name: "ClusterVersionThere", Evaluate: func(in Inputs) *patch.Result {
			return resultIf(in.ClusterVersion == nil && in.versionOperatorWrites(), patch.Waiting, patch.ReasonWaitingForObject,
				"The cluster-version-operator owns the guard, but there is no ClusterVersion in which to claim it; nothing is changed until there is one")
		}},
		{Name: "NodesKnown", Evaluate: func(in Inputs) *patch.Result {
			return resultIf(in.Nodes == nil && needsGuards(in.mode()), patch.Waiting, ReasonWaitingForNodes,
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

func resultIf(condition bool, state patch.State, reason, message string) *patch.Result {
	if !condition {
		return nil
	}
	return &patch.Result{State: state, Reason: reason, Message: message}
}

// checkNoOperatorOwns blocks writes to a guard of an earlier etcd operator, which ignores its guard on a single node.
func checkNoOperatorOwns(in Inputs) *patch.Result {
	stock := in.stockOwners()
	if !needsGuards(in.mode()) || in.ForceConflicts || len(stock) == 0 || in.Nodes == nil {
		return nil
	}
	want, _ := in.wantedStrength()
	faults := in.faults(want)
	if len(faults) > 0 {
		return resultIf(true, patch.Blocked, patch.ReasonFieldOwnedByOther, fmt.Sprintf(
			"The guard is owned by %s and %s; check that this operator runs, restart or update it, or start with --force-conflicts",
			patch.Quoted(stock), joinWords(faults)))
	}
	return resultIf(true, patch.NotNeeded, patch.ReasonNotNeeded, "The guard of the etcd operator is right")
}

// checkAdoptable refuses a Deployment that is no guard: its selector cannot be changed, and its other containers would
// stay.
func checkAdoptable(in Inputs) *patch.Result {
	if in.Deployment == nil || !needsGuards(in.mode()) {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(in.Deployment.Spec.Selector)
	is := err == nil && selector.Matches(labels.Set(etcdguard.GuardLabels())) && imageOf(in.Deployment) != ""
	return resultIf(!is, patch.Failed, patch.ReasonInvalid, fmt.Sprintf(
		"The Deployment is not a guard: its selector must match %s, and it must have a container %q; delete it to have it recreated",
		labels.FormatLabels(etcdguard.GuardLabels()), etcdguard.ContainerName))
}

// checkFieldsFree blocks writes if another client, no operator, owns a size field that would be changed or removed.
func checkFieldsFree(in Inputs) *patch.Result {
	if in.ForceConflicts {
		return nil
	}
	want, _ := in.wantedStrength()
	numbers, err := in.sizeFields(want)
	for _, number := range numbers {
		owners := slices.DeleteFunc(number.owners, func(m string) bool {
			return m == overrides.ClusterVersionOperator || m == patch.ReleasedManager(etcdguard.Name) || slices.Contains(stockManagers, m)
		})
		if len(owners) > 0 && (!needsGuards(in.mode()) || !number.matches) {
			return ptr.To(patch.OwnedByOther(number.field, owners...))
		}
	}
	return invalid(err)
}
