package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// OverrideChecks are the preconditions of setting the override, in order. The first that has something to say ends the
// decision.
func OverrideChecks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "Exists", Evaluate: checkAuthenticationExists},
		{Name: "OptedOut", Evaluate: checkAuthenticationOptedOut},
		{Name: "OverrideReadable", Evaluate: checkOverrideReadable},
		{Name: "TopologyKnown", Evaluate: checkTopologyKnown},
		{Name: "OverrideNeeded", Evaluate: checkOverrideNeeded},
		{Name: "OverrideFree", Evaluate: checkOverrideFree},
	}
}

// OAuthServerChecks are the preconditions of shaping the oauth-openshift Deployment, in order.
func OAuthServerChecks() patch.Chain[Inputs] { return oauthServer.checks() }

// OAuthAPIServerChecks are the preconditions of shaping the Deployment of the OAuth API server, in order.
func OAuthAPIServerChecks() patch.Chain[Inputs] { return oauthAPIServer.checks() }

func (o operand) checks() patch.Chain[Inputs] {
	return patch.Chain[Inputs]{
		{Name: "Valid", Evaluate: checkValid},
		{Name: "Exists", Evaluate: o.checkExists},
		{Name: "OptedOut", Evaluate: o.checkOptedOut},
		{Name: "TopologyKnown", Evaluate: checkTopologyKnown},
		{Name: "ControlPlaneInCluster", Evaluate: checkControlPlaneInCluster},
		{Name: "NodesKnown", Evaluate: o.checkNodesKnown},
		{Name: "ShapeFree", Evaluate: o.checkShapeFree},
	}
}

func checkValid(in Inputs) *patch.Result {
	if err := in.Validate(); err != nil {
		return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: "The inputs are not those of a cluster: " + err.Error()}
	}
	return nil
}

func checkAuthenticationExists(in Inputs) *patch.Result {
	switch {
	case in.Authentication == nil:
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "There is no configuration of the authentication operator; the installation makes it"}
	case deleting(in.Authentication):
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "The configuration of the authentication operator is being deleted; nothing is changed until there is a new one"}
	}
	return nil
}

func (o operand) checkExists(in Inputs) *patch.Result {
	switch d := o.live(in); {
	case d == nil:
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "There is no " + o.subject() + "; the authentication operator makes it where it is needed"}
	case deleting(d):
		return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "The " + o.subject() + " is being deleted; the authentication operator makes a new one where it is needed"}
	}
	return nil
}

func checkAuthenticationOptedOut(in Inputs) *patch.Result {
	return optedOut(in.Authentication, "configuration of the authentication operator")
}

func (o operand) checkOptedOut(in Inputs) *patch.Result { return optedOut(o.live(in), o.subject()) }

func optedOut(object metav1.Object, subject string) *patch.Result {
	if !patch.OptsOut(object.GetAnnotations(), Name) {
		return nil
	}
	return &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
		Message: "The annotation " + patch.OptOutAnnotation + " on the " + subject + " keeps this module away; remove it to have the topology decide"}
}

// checkOverrideReadable also speaks where no override is needed: who wrote it should hear that it says nothing.
func checkOverrideReadable(in Inputs) *patch.Result {
	if _, err := ReadOverride(overrides(in)); err != nil {
		return invalid(err)
	}
	return nil
}

func overrides(in Inputs) []byte { return in.Authentication.Spec.UnsupportedConfigOverrides.Raw }

func checkTopologyKnown(in Inputs) *patch.Result {
	return patch.TopologyKnown(in.Cluster)
}

func checkControlPlaneInCluster(in Inputs) *patch.Result {
	if in.Cluster.ControlPlane.Mode != configv1.ExternalTopologyMode {
		return nil
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonExternalControlPlane,
		Message: "The control plane is external, and the OAuth servers are with it"}
}

// checkOverrideNeeded leaves the override to the one topology that runs with fewer control-plane nodes than any release asks
// for: on two nodes it would take away what they are there for.
func checkOverrideNeeded(in Inputs) *patch.Result {
	message := ""
	switch {
	case !topology.SingleReplica(in.Cluster.ControlPlane.Mode):
		message = "The control-plane topology is not SingleReplica: the OAuth servers need no override" + in.Cluster.UnknownValues()
	case in.Override == OverrideNever:
		message = "The policy is to set no override"
	case in.Override == OverrideAlways:
		return nil
	default:
		switch NeedOfCluster(in.ClusterVersion) {
		case NeedOverride:
			return nil
		case NeedNone:
			message = "This release runs the OAuth servers on one control-plane node by the topology alone"
		case NeedUnknown:
			message = "Whether this release needs the override is not known, so none is set; --override=always sets it"
		}
	}
	// It was readable one check before.
	override, err := ReadOverride(overrides(in))
	if err != nil {
		return invalid(err)
	}
	owners, err := ownership.Managers(in.Authentication, FieldOverride)
	oursAlone := err == nil && slices.Equal(owners, []string{FieldOwner}) // and about to go
	if text := override.Deprecation(); text != "" && !oursAlone {
		message += ". " + text
	}
	return &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded, Message: message}
}

// checkOverrideFree lets the override be set where it is absent or ours alone to change. An apply leaves the other keys alone where
// the API server keeps account of the field key by key, as it does (see the package documentation); where the managedFields
// say that the field is one value, or that nobody knows, what is there is left alone.
func checkOverrideFree(in Inputs) *patch.Result {
	override, values, err := readOverrides(overrides(in))
	if err != nil {
		return invalid(err)
	}
	owners, err := ownership.Managers(in.Authentication, FieldOverride)
	if err != nil {
		return invalid(err)
	}
	held := slices.Contains(owners, FieldOwner)
	others := slices.DeleteFunc(owners, func(manager string) bool { return manager == FieldOwner })
	_, written := values[OverrideKey]
	switch {
	case override.Value && held:
		return nil
	case override.Value:
		return &patch.Result{State: patch.NotNeeded, Reason: ReasonOverrideSetByOther,
			Message: "Somebody else has set the override, so there is nothing to add. " + override.Deprecation()}
	case written && (len(others) > 0 || !held):
		return overridesOwnedByOther(FieldOverride, others)
	case written || len(values) == 0:
		return nil
	}
	path, err := ownership.ParsePath(FieldOverrides)
	if err != nil {
		return invalid(err)
	}
	owners, err = ownership.OthersAt(in.Authentication, path, FieldOwner)
	if err != nil {
		return invalid(err)
	}
	one, err := ownership.Atomic(in.Authentication, path)
	if err != nil {
		return invalid(err)
	}
	if one || len(owners) == 0 || slices.Contains(owners, ownership.BeforeFirstApply) {
		return overridesOwnedByOther(FieldOverrides, owners)
	}
	return nil
}

func overridesOwnedByOther(field string, managers []string) *patch.Result {
	if len(managers) == 0 {
		managers = []string{ownership.BeforeFirstApply}
	}
	return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
		"%s is owned by %s and stays as it is; on this release the OAuth servers need %s to be true on one control-plane node: set it there",
		field, quoted(managers), OverrideKey)}
}

// checkNodesKnown waits for the first node, where the number of pods follows it.
func (o operand) checkNodesKnown(in Inputs) *patch.Result {
	if _, err := o.host(in); !errors.Is(err, ErrNoNodes) {
		return nil
	}
	return &patch.Result{State: patch.Waiting, Reason: ReasonWaitingForNodes,
		Message: "There is no node with the master role yet that takes the pods, and their number follows such nodes; nothing is changed until there is"}
}

// checkShapeFree stands back from a Deployment that somebody else shapes otherwise. The shape is set as a whole or not at all:
// half of it can stop a rollout. A value that is equal to ours is no obstacle: both then own it.
func (o operand) checkShapeFree(in Inputs) *patch.Result {
	live := o.live(in)
	shaped, err := o.shaped(in)
	if err != nil {
		return invalid(err)
	}
	for _, field := range differences(live, shaped) {
		others, err := ownership.Others(live, field, FieldOwner)
		switch {
		case err != nil:
			return invalid(err)
		case len(others) > 0 && !in.ForceConflicts:
			return &patch.Result{State: patch.Blocked, Reason: ReasonFieldOwnedByOther, Message: fmt.Sprintf(
				"%s of the %s is owned by %s and stays as it is, and so does the rest of it; to have it follow the topology, "+
					"remove the field there or start with --force-conflicts", field, o.subject(), quoted(others))}
		}
	}
	return nil
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}

func invalid(err error) *patch.Result {
	text := err.Error()
	return &patch.Result{State: patch.Failed, Reason: ReasonInvalid, Message: strings.ToUpper(text[:1]) + text[1:]}
}
