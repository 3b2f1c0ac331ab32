// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

func overrideChecks() patch.Chain[override] {
	return patch.Chain[override]{
		{Name: "Valid", Evaluate: func(o override) *patch.Result { return checkValid(o.Inputs) }},
		{Name: "Exists", Evaluate: checkAuthenticationExists},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: func(o override) *patch.Result {
			return optedOut(o.Authentication, "configuration of the authentication operator")
		}},
		{Name: "OverrideReadable", Evaluate: checkOverrideReadable},
		{Name: "TopologyKnown", Evaluate: func(o override) *patch.Result { return patch.TopologyKnown(o.Cluster) }},
		{Name: "OverrideNeeded", OwnedFields: patch.ReleaseFields, Evaluate: checkOverrideNeeded},
		{Name: "OverrideFree", OwnedFields: patch.ReleaseFields, Evaluate: checkOverrideFree},
	}
}

func deploymentChecks() patch.Chain[target] {
	return patch.Chain[target]{
		{Name: "Valid", Evaluate: func(o target) *patch.Result { return checkValid(o.in) }},
		{Name: "Exists", Evaluate: func(o target) *patch.Result { return o.Exists() }},
		{Name: "OptedOut", OwnedFields: patch.ReleaseFields, Evaluate: func(o target) *patch.Result { return optedOut(o.Live, o.Subject) }},
		{Name: "TopologyKnown", Evaluate: func(o target) *patch.Result { return patch.TopologyKnown(o.Cluster) }},
		{Name: "ControlPlaneInCluster", OwnedFields: patch.ReleaseFields, Evaluate: checkControlPlaneInCluster},
		{Name: "NodesKnown", Evaluate: checkNodesKnown},
		{Name: "FieldsFree", OwnedFields: patch.ReleaseFields, Evaluate: func(o target) *patch.Result { return o.FieldsFree() }},
	}
}

func checkValid(in Inputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return patch.Invalid(err)
	}
	return nil
}

func checkAuthenticationExists(o override) *patch.Result {
	message := ""
	switch {
	case o.Authentication == nil:
		message = "There is no configuration of the authentication operator; the installation creates it"
	case o.Authentication.DeletionTimestamp != nil:
		message = "The configuration of the authentication operator is being deleted; waiting for a new one"
	default:
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject, Message: message}
}

func optedOut(object metav1.Object, subject string) *patch.Result {
	if !patch.OptsOut(object, auth.Name) {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: patch.ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " on the " + subject + " keeps this module away; remove it to have it follow the topology"}
}

// checkOverrideReadable also reports an unreadable override that is not needed, because a person has set it.
func checkOverrideReadable(o override) *patch.Result {
	if o.unreadable != nil {
		return patch.Invalid(o.unreadable)
	}
	return nil
}

func checkControlPlaneInCluster(o target) *patch.Result {
	if o.Cluster.ControlPlane.Mode != configv1.ExternalTopologyMode {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonExternalControlPlane,
		Message: "The control plane is External and runs the OAuth servers"}
}

// checkOverrideNeeded allows the override on SingleReplica only: two nodes would lose the minimum.
func checkOverrideNeeded(o override) *patch.Result {
	message := ""
	switch {
	case !topology.SingleReplica(o.Cluster.ControlPlane.Mode):
		message = "The control-plane topology is not SingleReplica: the OAuth servers need no override" + o.Cluster.UnknownValues()
	case o.Override == OverrideNever:
		message = "The override is turned off by --override=never"
	case o.Override == OverrideAlways:
		return nil
	default:
		switch needOfCluster(o.ClusterVersion) {
		case needOverride:
			return nil
		case needNone:
			message = "This release runs the OAuth servers on one control-plane node without an override"
		case needUnknown:
			message = "Whether this release needs the override is not known, so none is set; --override=always sets it"
		}
	}
	owners, err := ownership.Managers(o.Authentication, FieldOverride)
	released := err == nil && slices.Equal(owners, []string{FieldOwner})
	if deprecation := o.Deprecation(auth.OverrideKey); deprecation != "" && !released {
		message += ". " + deprecation
	}
	return &patch.Result{State: patch.NotNeeded, Reason: patch.ReasonNotNeeded, Message: message}
}

// checkOverrideFree allows the override where it is absent or only the module owns it. Other overrides block it unless
// managedFields has their keys: where the field is one value, they would be lost.
func checkOverrideFree(o override) *patch.Result {
	owners, err := ownership.Managers(o.Authentication, FieldOverride)
	if err != nil {
		return patch.Invalid(err)
	}
	owned := slices.Contains(owners, FieldOwner)
	others := slices.DeleteFunc(owners, func(manager string) bool { return manager == FieldOwner })
	_, present := o.values[auth.OverrideKey]
	switch {
	case o.Value && owned:
		return nil
	case o.Value:
		return &patch.Result{State: patch.NotNeeded, Reason: ReasonOverrideSetByOther,
			Message: "Another client has set the override already. " + o.Deprecation(auth.OverrideKey)}
	case present && (len(others) > 0 || !owned):
		return overridesOwnedByOther(FieldOverride, others)
	case present || len(o.values) == 0:
		return nil
	}
	path, pathErr := ownership.ParsePath(FieldOverrides)
	owners, ownersErr := ownership.OthersAt(o.Authentication, path, FieldOwner)
	atomic, atomicErr := ownership.Atomic(o.Authentication, path)
	if err := errors.Join(pathErr, ownersErr, atomicErr); err != nil {
		return patch.Invalid(err)
	}
	if atomic || len(owners) == 0 || slices.Contains(owners, ownership.BeforeFirstApply) {
		return overridesOwnedByOther(FieldOverrides, owners)
	}
	return nil
}

func overridesOwnedByOther(field string, managers []string) *patch.Result {
	if len(managers) == 0 {
		managers = []string{ownership.BeforeFirstApply}
	}
	return &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"%s is owned by %s and stays as it is; on this release the OAuth servers need %s to be true on one control-plane node: set it there",
		field, patch.Quoted(managers), auth.OverrideKey)}
}

func checkNodesKnown(o target) *patch.Result {
	if _, err := o.Shape(o.Live); !errors.Is(err, auth.ErrNoNodes) {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForNodes,
		Message: "There is no schedulable node with the master role yet, and the number of pods follows such nodes"}
}
