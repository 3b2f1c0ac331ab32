// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/auth/decision"
	"github.com/solonode/sno/auth/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/topologytest"
)

// outcome is a result with a part of its message. Without a reason it is an intent.
type outcome struct {
	state   patch.State
	reason  string
	message string
	release bool
}

func (want outcome) check(t *testing.T, step patch.Step) {
	t.Helper()
	got := step.Result
	switch {
	case (want.reason == "") != (step.Intent != nil), want.release != step.Release:
		t.Errorf("%+v, %v, want %+v", step, got, want)
	case want.reason == "":
	case got.State != want.state || got.Reason != want.reason || want.message == "" || !strings.Contains(got.Message, want.message):
		t.Errorf("%v\nwant %s (%s): ...%s...", got, want.state, want.reason, want.message)
	}
}

func TestDecideOverride(t *testing.T) {
	const (
		whole     = ".spec.unsupportedConfigOverrides"
		set, off  = `{"` + fixture.Key + `":true}`, `{"` + fixture.Key + `":false}`
		other     = `{"oauthConfig":{}}`
		both      = `{"` + fixture.Key + `":true,"oauthConfig":{}}`
		notSingle = "The control-plane topology is not SingleReplica: the OAuth servers need no override"
	)
	with := func(in decision.Inputs, change func(*decision.Inputs)) decision.Inputs {
		change(&in)
		return in
	}
	noTopology := func(in *decision.Inputs) { in.Cluster = nil }
	release := func(version string) func(*decision.Inputs) {
		return func(in *decision.Inputs) { in.ClusterVersion = running(version) }
	}
	topologies := func(controlPlane, infrastructure configv1.TopologyMode) func(*decision.Inputs) {
		return func(in *decision.Inputs) { in.Cluster = ptr.To(fixture.ClusterOf(controlPlane, infrastructure)) }
	}
	unowned := func(a *operatorv1.Authentication) { a.ManagedFields = nil }
	by := authenticationOwnedBy
	owned, oc := by(decision.FieldOwner, perKey), by("oc", perKey)
	several := func(in decision.Inputs) decision.Inputs {
		return with(in, topologies(topologytest.HA, topologytest.HA))
	}
	released := outcome{patch.NotNeeded, "NotNeeded", notSingle, true}
	status := func(a *operatorv1.Authentication) {
		fixture.AddOwner(a, decision.FieldOwner, `{"f:status":{"f:conditions":{}}}`)
		a.ManagedFields[len(a.ManagedFields)-1].Subresource = "status"
	}
	notNeeded := func(message string) outcome { return outcome{patch.NotNeeded, "NotNeeded", message, false} }
	invalid := func(message string) outcome { return outcome{patch.Failed, "Invalid", message, false} }
	optedOut := outcome{patch.OptedOut, "OptedOut", "keeps this module away", false}
	blocked := func(field, managers string) outcome {
		return outcome{patch.Blocked, "FieldOwnedByOther", field + " is owned by " + managers + " and stays as it is; ", false}
	}

	for name, test := range map[string]struct {
		in   decision.Inputs
		want outcome
	}{
		"absent":                 {overrideInputs(""), outcome{}},
		"null":                   {overrideInputs("null"), outcome{}},
		"null that has an owner": {overrideInputs("null", by("cluster-authentication-operator", asOne)), outcome{}},
		"an empty object":        {overrideInputs("{}", by("oc", asOne)), outcome{}},
		"another object":         {overrideInputs("", func(a *operatorv1.Authentication) { a.Name = "x" }), invalid("cannot be understood")},
		"no Authentication":      {decision.Inputs{}, outcome{patch.Waiting, "WaitingForObject", "There is no configuration", false}},
		"being deleted":          {overrideInputs("", deleted), outcome{patch.Waiting, "WaitingForObject", "is being deleted", false}},
		"opted out":              {overrideInputs(set, optOut), optedOut},
		"opted out, unreadable, before the topology is known": {with(overrideInputs("{", optOut), noTopology), optedOut},
		"unreadable document": {overrideInputs("{"), invalid("unreadable unsupportedConfigOverrides: spec.unsupportedConfigOverrides: ")},
		"unreadable where not needed": {with(overrideInputs(`{"`+fixture.Key+`":"maybe"}`), release("4.8.2")),
			invalid(`spec.unsupportedConfigOverrides.` + fixture.Key + ` is "maybe"; want true or false`)},
		"no topology": {with(overrideInputs(""), noTopology), outcome{patch.Waiting, "WaitingForInfrastructure", "There is no Infrastructure", false}},
		"unknown": {with(overrideInputs(""), topologies(topologytest.Unknown, topologytest.SR)),
			notNeeded(notSingle + `; status.controlPlaneTopology has the unknown value "Quantum"`)},
		"not needed":      {with(overrideInputs(""), release("4.8.2")), notNeeded("This release runs the OAuth servers on one control-plane node")},
		"unknown release": {with(overrideInputs(""), release("dev")), notNeeded("is not known, so none is set; --override=always sets it")},
		"turned off": {with(overrideInputs(""), func(in *decision.Inputs) { in.Override = decision.OverrideNever }),
			notNeeded("turned off by --override=never")},
		"not needed, is set": {with(overrideInputs(set, oc), release("4.8.2")),
			notNeeded("without an override. The override " + fixture.Key + " is deprecated: it is honored")},
		"several, is false": {with(overrideInputs(off), topologies(topologytest.HA, topologytest.HA)), notNeeded(notSingle + ". The override " + fixture.Key + " is deprecated and false")},

		"another's true, by key":  {overrideInputs(set, oc), outcome{patch.NotNeeded, "OverrideSetByOther", "deprecated: it is honored", false}},
		"another's true, as one":  {overrideInputs(set, by("oc", asOne)), outcome{patch.NotNeeded, "OverrideSetByOther", "Another client has set", false}},
		"the module's, by key":    {overrideInputs(set, owned), outcome{}},
		"the module's, as one":    {overrideInputs(set, by(decision.FieldOwner, asOne)), outcome{}},
		"another's false, by key": {overrideInputs(off, oc), blocked(whole+"."+fixture.Key, `"oc"`)},
		"another's false, as one": {overrideInputs(off, by("oc", asOne)), blocked(whole+"."+fixture.Key, `"oc"`)},
		"another's false, forced": {with(overrideInputs(off, oc), func(in *decision.Inputs) { in.ForceConflicts = true }), blocked(whole+"."+fixture.Key, `"oc"`)},
		"false, no owner":         {overrideInputs(off), blocked(whole+"."+fixture.Key, `"before-first-apply"`)},
		"false, no managedFields": {overrideInputs(off, unowned), blocked(whole+"."+fixture.Key, `"before-first-apply"`)},
		"the module's, false":     {overrideInputs(off, owned), outcome{}},

		"the module's as one":          {several(overrideInputs(set, by(decision.FieldOwner, asOne))), released},
		"co-owned with oc, not needed": {several(overrideInputs(set, owned, oc)), released},
		"with others, not needed":      {several(overrideInputs(both, owned, by("oc", perOther))), released},
		"oc's as one, not needed":      {several(overrideInputs(both, by("oc", asOne))), notNeeded(notSingle)},
		"oc's, module owns the status": {several(overrideInputs(set, oc, status)), notNeeded(notSingle)},
		"oc's false, module owns a field": {overrideInputs(off, oc, by(decision.FieldOwner, `{"f:spec":{"f:logLevel":{}}}`)),
			outcome{patch.Blocked, "FieldOwnedByOther", "is owned by", true}},

		"others by key":                      {overrideInputs(other, by("oc", perOther)), outcome{}},
		"others by key, an empty map before": {overrideInputs(other, by("operator", asOne), by("oc", perOther)), outcome{}},
		"others as one":                      {overrideInputs(other, by("oc", asOne)), blocked(whole, `"oc"`)},
		"others without owner":               {overrideInputs(other), blocked(whole, `"before-first-apply"`)},
		"others, no managedFields":           {overrideInputs(other, unowned), blocked(whole, `"before-first-apply"`)},
		"others in YAML, as one":             {overrideInputs("oauthConfig: {}", by("oc", asOne)), blocked(whole, `"oc"`)},
		"unreadable ownership":               {overrideInputs("", by("oc", `{"f:spec":7}`)), invalid(`unreadable metadata.managedFields: manager "oc"`)},
		"unreadable ownership, not needed":   {with(overrideInputs("", by("oc", `{"f:spec":7}`)), release("4.8.2")), notNeeded("without an override")},
	} {
		t.Run(name, func(t *testing.T) { test.want.check(t, decision.Decide(test.in).Override) })
	}
}

// All combinations of the inputs, compared with a rule.
func TestDecideOverrideTable(t *testing.T) {
	type situation struct {
		mode                    configv1.TopologyMode
		policy                  decision.OverridePolicy
		release                 string
		value                   string // of the override
		owned, others, optedOut bool
	}
	type action struct{ intent, release bool }
	rule := func(s situation) action {
		needed := s.mode == topologytest.SR && (s.policy == decision.OverrideAlways || (s.policy != decision.OverrideNever && s.release == "4.7.13"))
		switch {
		case s.optedOut:
			return action{false, s.owned}
		case s.value == "broken":
			return action{}
		case !needed:
			return action{false, s.owned}
		case s.value == "true":
			return action{s.owned, false}
		case s.value == "false" && (s.others || !s.owned):
			return action{false, s.owned}
		}
		return action{true, false}
	}
	raws := map[string]string{"": "", "true": `{"` + fixture.Key + `":true}`, "false": `{"` + fixture.Key + `":false}`, "broken": `{"` + fixture.Key + `":"maybe"}`}
	policies := []decision.OverridePolicy{"", decision.OverrideAuto, decision.OverrideAlways, decision.OverrideNever}
	for bits := range 7 * 4 * 3 * 4 * 8 {
		pick := func(n int) int { i := bits % n; bits /= n; return i }
		s := situation{
			topologytest.AllModes[pick(7)], policies[pick(4)], []string{"", "4.7.13", "4.14.0"}[pick(3)], []string{"", "true", "false", "broken"}[pick(4)],
			pick(2) == 1, pick(2) == 1, pick(2) == 1,
		}
		if s.value == "" && (s.owned || s.others) {
			continue // an absent field has no owner
		}
		in := overrideInputs(raws[s.value])
		in.Cluster, in.Override, in.ClusterVersion = ptr.To(fixture.ClusterOf(s.mode, topologytest.HA)), s.policy, running(s.release)
		if s.owned {
			fixture.AddOwner(in.Authentication, decision.FieldOwner, perKey)
		}
		if s.others {
			fixture.AddOwner(in.Authentication, "oc", perKey)
		}
		if s.optedOut {
			optOut(in.Authentication)
		}
		step := decision.Decide(in).Override
		if got, want := (action{step.Intent != nil, step.Release}), rule(s); got != want {
			t.Errorf("%+v: %+v, want %+v; %v", s, got, want, step.Result)
		}
	}
}

// patch/operand tests conflicts by field.
func TestDecideDeployments(t *testing.T) {
	closed := func(in *decision.Inputs) {
		in.Cluster = ptr.To(fixture.ClusterOf(topologytest.HA, topologytest.SR))
		for i := range in.ControlPlaneNodes {
			in.ControlPlaneNodes[i].Spec.Taints = []corev1.Taint{{Key: "example.com/reserved", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	noNodes := func(mode configv1.TopologyMode) func(*decision.Inputs) {
		return func(in *decision.Inputs) {
			in.Cluster, in.ControlPlaneNodes = ptr.To(fixture.ClusterOf(mode, topologytest.SR)), nil
		}
	}
	noTopology := func(in *decision.Inputs) { in.Cluster = nil }
	none := func(in *decision.Inputs) { in.OAuthServer, in.OAuthAPIServer = nil, nil }
	elsewhere := func(d *appsv1.Deployment) { d.Namespace = "x" }
	owned := deploymentOwnedBy(decision.FieldOwner, `{"f:spec":{"f:strategy":{"f:type":{}}}}`)
	stock := func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](7)
		fixture.AddOwner(d, "stock", `{"f:spec":{"f:replicas":{}}}`)
	}
	stuck := func(d *appsv1.Deployment) {
		d.Status.ObservedGeneration, d.Status.UpdatedReplicas = d.Generation, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded"}}
	}
	all := func(f ...func(*appsv1.Deployment)) []func(*appsv1.Deployment) { return f }
	for name, test := range map[string]struct {
		live   []func(*appsv1.Deployment)
		change func(*decision.Inputs)
		want   outcome
	}{
		"no owner":              {nil, nil, outcome{}},
		"the module's":          {all(owned), nil, outcome{}},
		"forced":                {all(stock), func(in *decision.Inputs) { in.ForceConflicts = true }, outcome{}},
		"another's":             {all(stock), nil, outcome{patch.Blocked, "FieldOwnedByOther", `of the Deployment NAME is owned by "stock"`, false}},
		"another's, stuck":      {all(stock, stuck), nil, outcome{patch.Failed, "RolloutStuck", "The rollout of the Deployment NAME, which", false}},
		"co-owned, stuck":       {all(stock, stuck, owned), nil, outcome{patch.Failed, "RolloutStuck", "delete the old one", true}},
		"stuck, but opted out":  {all(stock, stuck, optOut), nil, outcome{patch.OptedOut, "OptedOut", "keeps this module away", false}},
		"opted out, owned":      {all(owned, optOut), noTopology, outcome{patch.OptedOut, "OptedOut", "on the Deployment NAME keeps", true}},
		"another object":        {all(owned, elsewhere), nil, outcome{patch.Failed, "Invalid", "cannot be understood", false}},
		"being deleted":         {all(owned, deleted), nil, outcome{patch.Waiting, "WaitingForObject", "The Deployment NAME is being deleted", false}},
		"no Deployments":        {nil, none, outcome{patch.Waiting, "WaitingForObject", "There is no Deployment NAME;", false}},
		"no topology, owned":    {all(owned), noTopology, outcome{patch.Waiting, "WaitingForInfrastructure", "no Infrastructure object yet", false}},
		"external, owned":       {all(owned), noNodes(topologytest.External), outcome{patch.NotNeeded, "ExternalControlPlane", "The control plane is External", true}},
		"no node, single":       {nil, noNodes(topologytest.SR), outcome{}},
		"no node, owned":        {all(owned), noNodes(topologytest.HA), outcome{patch.Waiting, "WaitingForNodes", "There is no schedulable node", false}},
		"tainted nodes":         {nil, closed, outcome{patch.Waiting, "WaitingForNodes", "There is no schedulable node", false}},
		"opted out, unreadable": {all(optOut, deploymentOwnedBy(decision.FieldOwner, `{"f:spec":7}`)), nil, outcome{patch.OptedOut, "OptedOut", "away", true}},
	} {
		in := deploymentInputs(topologytest.SR, topologytest.SR, 3, fixture.Server(test.live...), fixture.APIServer(test.live...))
		if test.change != nil {
			test.change(&in)
		}
		decided := decision.Decide(in)
		for target, step := range map[string]patch.Step{
			"openshift-authentication/oauth-openshift": decided.OAuthServer, "openshift-oauth-apiserver/apiserver": decided.OAuthAPIServer,
		} {
			want := test.want
			want.message = strings.Replace(want.message, "NAME", target, 1)
			t.Run(name+" "+target, func(t *testing.T) { want.check(t, step) })
		}
	}
}

// A blocked step does not stop the others, and the inputs do not change.
func TestDecideIndependent(t *testing.T) {
	three := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) }
	in := deploymentInputs(topologytest.SR, topologytest.SR, 1, fixture.Server(three, deploymentOwnedBy("stock", `{"f:spec":{"f:replicas":{}}}`)), fixture.APIServer())
	in.Authentication, in.Override = overrideInputs("[]").Authentication, decision.OverrideAlways
	before := fixture.Text(t, in)
	got := decision.Decide(in)
	if got.Override.Result.State != patch.Failed || got.OAuthServer.Result.State != patch.Blocked || got.OAuthAPIServer.Intent == nil {
		t.Errorf("%s", fixture.Text(t, got))
	}
	if again := decision.Decide(in); fixture.Text(t, again) != fixture.Text(t, got) {
		t.Error("the second decision differs")
	}
	if after := fixture.Text(t, in); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}
