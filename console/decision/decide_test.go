// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/console/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology/topologytest"
)

// situation is all that the decision on downloads and its override depends on.
type situation struct {
	Topology  configv1.TopologyMode // "" while it is not known
	Force     bool
	OptOut    string // annotation, Removed, Unmanaged or ""
	Version   string
	Observed  bool
	Downloads string
	Stuck     bool
}

var versions = map[string]*configv1.ClusterVersion{
	"none":               nil,
	"no entry":           version(otherEntry()),
	"ours":               withOwner(version(theEntry(true)), own, overrideJSON),
	"theirs":             withOwner(version(theEntry(true)), person, overrideJSON),
	"conflicting":        withOwner(version(theEntry(false)), person, overrideJSON),
	"conflicting, owned": withOwner(withOwner(version(theEntry(false)), own, overrideJSON), person, overrideJSON),
	"one value":          withOwner(version(otherEntry()), person, wholeListJSON),
	"unreadable":         withOwner(version(), person, `{"f:spec":7}`),
}

var deployed = map[string]*appsv1.Deployment{
	"missing":          nil,
	"deleting":         fixture.Manifest("downloads", deleting, ownedBy(cvo, manifestJSON)),
	"release":          fixture.Manifest("downloads", ownedBy(cvo, manifestJSON)),
	"taken":            fixture.Shaped("downloads", ownedBy(cvo, containersJSON), ownedBy(own, shapeJSON)),
	"taken scaled":     fixture.Shaped("downloads", scaled, ownedBy(cvo, containersJSON), ownedBy(own, shapeJSON), ownedBy(person, replicasJSON)),
	"scaled":           fixture.Manifest("downloads", scaled, ownedBy(cvo, containersJSON), ownedBy(person, replicasJSON)),
	"stock two":        fixture.Manifest("downloads", ownedBy(stock, manifestJSON)),
	"stock one":        stockShape("downloads"),
	"plain":            fixture.Manifest("downloads", ownedBy("installer", containersJSON)),
	"no managedFields": fixture.Shaped("downloads"),
	"unreadable":       fixture.Manifest("downloads", ownedBy(cvo, `{"f:spec":7}`)),
	"ours unreadable":  fixture.Shaped("downloads", ownedBy(cvo, containersJSON), ownedBy(own, `{"f:spec":7}`)),
}

func situations() []situation {
	var all []situation
	for _, topology := range []configv1.TopologyMode{topologytest.SR, topologytest.HA, ""} {
		for version := range versions {
			for downloads := range deployed {
				for _, optOut := range []string{"", "annotation", "Removed", "Unmanaged"} {
					for bits := range 8 {
						all = append(all, situation{topology, bits&1 != 0, optOut, version, bits&2 != 0, downloads, bits&4 != 0})
					}
				}
			}
		}
	}
	return all
}

func (s situation) inputs() decision.Inputs {
	in := inputs(consoleIs(stockShape("console")), topologies(s.Topology, s.Topology), clusterVersion(versions[s.Version].DeepCopy()),
		downloads(deployed[s.Downloads].DeepCopy()))
	if s.Topology == "" {
		in.Cluster = nil
	}
	in.ForceConflicts = s.Force
	if s.OptOut == "Removed" || s.OptOut == "Unmanaged" {
		managed(operatorv1.ManagementState(s.OptOut))(&in)
	}
	if in.ClusterVersion != nil && !s.Observed {
		in.ClusterVersion.Generation++
	}
	if in.Downloads != nil && s.OptOut == "annotation" {
		optedOut("console")(in.Downloads)
	}
	if in.Downloads != nil && s.Stuck {
		stuck(in.Downloads)
	}
	return in
}

type verdict struct{ Override, Downloads, Reason string }

const applies, releases = "apply", "release"

func (s situation) rule() verdict {
	is := func(value string, of ...string) bool { return slices.Contains(of, value) }
	var (
		absent   = is(s.Downloads, "missing", "deleting")
		ourEntry = is(s.Version, "ours", "conflicting, owned")
		// byRelease: the cluster-version-operator manages downloads; holding: the module owns fields of it, or may.
		byRelease  = is(s.Downloads, "release", "taken", "taken scaled", "scaled", "unreadable", "ours unreadable")
		holding    = is(s.Downloads, "taken", "taken scaled", "ours unreadable")
		unreadable = is(s.Downloads, "unreadable", "ours unreadable")
		byStock    = is(s.Downloads, "stock two", "stock one")
		byPerson   = is(s.Downloads, "scaled", "taken scaled")
		needed     = s.Version != "none" && (byRelease || ourEntry || s.Downloads == "no managedFields")
	)
	when := func(is bool, what string) string {
		if is {
			return what
		}
		return ""
	}
	if s.Version == "unreadable" {
		return verdict{"", "", "Invalid"}
	}
	if absent { // the override would prevent that downloads is created
		if reason := map[string]string{"Removed": "NotNeeded", "Unmanaged": "OptedOut"}[s.OptOut]; reason != "" {
			return verdict{when(ourEntry, releases), releases, reason}
		}
		return verdict{when(ourEntry, releases), "", "WaitingForObject"}
	}
	// leave releases the shape before the override.
	leave := func(reason string) verdict {
		if ourEntry && !s.Observed && holding {
			return verdict{"", "", "GivingBack"}
		}
		return verdict{when(ourEntry && !holding, releases), releases, reason}
	}
	// yield keeps the override for a person's value.
	yield := func() verdict {
		if unreadable && s.Version != "none" {
			return verdict{"", "", "Invalid"}
		}
		return verdict{"", releases, "FieldOwnedByOther"}
	}
	orStuck := func(v verdict) verdict {
		if v.Downloads == releases && s.Stuck {
			v.Reason = "RolloutStuck"
		}
		return v
	}
	switch {
	case s.OptOut == "Removed":
		return leave("NotNeeded")
	case s.OptOut != "":
		return leave("OptedOut")
	case s.Topology == "":
		return verdict{"", "", "WaitingForInfrastructure"}
	case s.Topology == topologytest.HA:
		return leave("NotNeeded")
	case unreadable && !s.Force:
		return verdict{"", "", "Invalid"}
	case s.Downloads == "stock one" && !s.Force:
		return orStuck(leave("NotNeeded"))
	case s.Downloads == "stock two" && !s.Force:
		return orStuck(leave("FieldOwnedByOther"))
	case byPerson && !s.Force:
		return orStuck(yield())
	case s.Version == "none" && byRelease:
		return verdict{"", "", "WaitingForObject"}
	case needed && is(s.Version, "conflicting", "conflicting, owned", "one value"):
		if byStock {
			return orStuck(leave("FieldOwnedByOther"))
		}
		return orStuck(yield())
	case unreadable:
		return verdict{"", "", "Invalid"}
	case !needed:
		return verdict{"", applies, ""}
	case !is(s.Version, "ours", "theirs"):
		return verdict{applies, "", "TakingOver"}
	case !s.Observed && s.Downloads != "taken":
		return verdict{when(ourEntry, applies), "", "TakingOver"}
	}
	return verdict{when(ourEntry, applies), applies, ""}
}

func TestDecide(t *testing.T) {
	for _, s := range situations() {
		in := s.inputs()
		before := text(t, in)
		if got, want := decided(t, in), s.rule(); got != want {
			t.Errorf("%+v:\n  %+v, want\n  %+v", s, got, want)
		}
		if text(t, in) != before {
			t.Fatalf("%+v: the inputs were changed", s)
		}
	}
}

func decided(t *testing.T, in decision.Inputs) verdict {
	t.Helper()
	decided := decision.Decide(in)
	action := func(step patch.Step) string {
		switch {
		case step.Intent != nil && step.Release:
			t.Errorf("applies and releases in one step: %s", text(t, in))
		case step.Intent != nil:
			return applies
		case step.Release:
			return releases
		}
		return ""
	}
	got := verdict{Override: action(decided.ClusterVersion), Downloads: action(decided.Downloads)}
	switch override, downloads := decided.ClusterVersion.Result, decided.Downloads.Result; {
	case decided.Downloads.Intent != nil:
	case downloads != nil:
		got.Reason = downloads.Reason
	case override != nil:
		got.Reason = override.Reason
	}
	return got
}

// "shape" stands for an intent, and "" for a Deployment that waits for the override. testdata/decide has more results.
func TestDecideReports(t *testing.T) {
	const (
		optout  = "OptedOut: The annotation sno.solonode.github.io/opt-out keeps this module away; remove it to have the Deployment follow the topology"
		two     = "NotNeeded: The topology has room for two replicas, the default of the Deployment"
		blocked = `FieldOwnedByOther: The Deployment is managed by "console", which does not follow the topology; ` +
			"update that operator, or start with --force-conflicts"
		entry    = "FieldOwnedByOther: The entry for the downloads Deployment in .spec.overrides is owned"
		missing  = "WaitingForObject: There is no "
		removed  = "NotNeeded: The managementState of the console is Removed"
		remedy   = "RolloutStuck: The rollout of the console Deployment, which another client shapes, does not finish; if a new pod is Pending, delete"
		operator = "NotNeeded: The console operator runs one replica by itself"
	)
	free := ownedBy("installer", containersJSON)
	on := func(d *appsv1.Deployment, change ...func(*decision.Inputs)) decision.Inputs {
		return inputs(append(change, consoleIs(d))...)
	}
	rolling := func(strategy appsv1.DeploymentStrategy) decision.Inputs {
		return on(stockShape("console", func(d *appsv1.Deployment) { d.Spec.Strategy = strategy }))
	}
	n, percent := intstr.FromInt32, intstr.FromString
	for name, test := range map[string]struct {
		in                 decision.Inputs
		console, downloads string
	}{
		"not valid": {on(fixture.Manifest("downloads")), "Invalid: The inputs cannot be understood: invalid inputs: " +
			"Deployment openshift-console/downloads is not openshift-console/console", "Invalid"},
		"missing":             {on(nil, downloads(nil)), missing + "console Deployment;", missing + "downloads Deployment;"},
		"missing, overridden": {inputs(downloads(nil), overridden(person, true)), "shape", missing + "Deployment, and an entry of another client"},
		"being deleted":       {inputs(downloads(fixture.Manifest("downloads", deleting))), "shape", "WaitingForObject: The downloads"},
		"opted out":           {on(fixture.Manifest("console", optedOut("console")), noCluster), optout, "WaitingForInfrastructure: There is no"},
		"opted out by the ClusterVersion": {inputs(func(in *decision.Inputs) {
			in.ClusterVersion.Annotations = map[string]string{patch.OptOutAnnotation: "all"}
		}), "shape", optout},
		"opted out by the operator's resource": {inputs(managed(operatorv1.Managed), func(in *decision.Inputs) {
			in.Operator.Annotations = map[string]string{patch.OptOutAnnotation: "console"}
		}), optout, optout},
		"opt-out of another module": {on(fixture.Manifest("console", free, optedOut("ingress"))), "shape", ""},
		"managed":                   {inputs(managed(operatorv1.Managed)), "shape", ""},
		"managed by force":          {inputs(managed(operatorv1.Force)), "shape", ""},
		"unmanaged, forced":         {inputs(managed(operatorv1.Unmanaged), forced), "OptedOut: The managementState", "OptedOut: The managementState"},
		"unknown":                   {inputs(topologies(topologytest.Unknown, topologytest.SR)), two + `; status.controlPlaneTopology has the unknown value "Quantum"`, two},
		"stock, other name": {on(fixture.Manifest("console", ownedBy("console-operator", manifestJSON))),
			strings.Replace(blocked, `"console"`, `"console-operator"`, 1), ""},
		"stock, anti-affinity": {on(stockShape("console", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity = fixture.Manifest("console").Spec.Template.Spec.Affinity
		})), blocked, ""},
		"stock, allows an outage": {rolling(fixture.Strategy(n(1), n(1))), blocked, ""},
		"stock, does not surge":   {rolling(fixture.Strategy(n(0), n(0))), blocked, ""},
		"stock, recreates":        {rolling(appsv1.DeploymentStrategy{Type: "Recreate"}), blocked, ""},
		"stock, odd percentages":  {rolling(fixture.Strategy(n(0), percent("many"))), blocked, ""},
		"stock, owns no field":    {on(fixture.Manifest("console", ownedBy(stock, containersJSON))), "shape", ""},
		"stuck":                   {on(stockShape("console", stuck)), remedy, ""},
		"stuck, two replicas":     {on(fixture.Manifest("console", stuck, ownedBy(stock, manifestJSON))), remedy, ""},
		"stuck, a person's":       {on(fixture.Manifest("console", stuck, scaled, ownedBy(person, replicasJSON))), remedy, ""},
		"stuck, newer rollout":    {on(stockShape("console", stuck, func(d *appsv1.Deployment) { d.Generation++ })), operator, ""},
		"stuck, highly available": {on(stockShape("console", stuck), topologies(topologytest.HA, topologytest.HA)), two, two},
		"stuck, removed":          {on(stockShape("console", stuck), managed(operatorv1.Removed)), removed, removed},
		"stuck, no topology":      {on(stockShape("console", stuck), noCluster), "WaitingForInfrastructure", "WaitingForInfrastructure"},
		"rolling out": {on(stockShape("console", stuck, func(d *appsv1.Deployment) {
			d.Status.Conditions = d.Status.Conditions[:1]
		})), operator, ""},
		"the release's console": {on(fixture.Manifest("console", ownedBy(cvo, replicasJSON))),
			`FieldOwnedByOther: .spec.replicas of the console Deployment is owned by "cluster-version-operator"`, ""},
		"no ClusterVersion": {inputs(clusterVersion(nil)), "shape",
			"WaitingForObject: The cluster-version-operator manages the Deployment, and there is no ClusterVersion"},
		"conflicting entry, forced":           {inputs(overridden(person, false), forced), "shape", entry + ` by "oc" and stays as it is, also with`},
		"conflicting entry, no owner":         {inputs(clusterVersion(version(theEntry(false)))), "shape", entry + " and stays as it is"},
		"conflicting entry, not needed":       {inputs(overridden(person, false), downloads(fixture.Manifest("downloads", free))), "shape", "shape"},
		"overrides as one value, with entry":  {inputs(clusterVersion(withOwner(version(theEntry(true)), person, wholeListJSON))), "shape", "shape"},
		"overrides as one value, still empty": {inputs(clusterVersion(withOwner(version(), person, wholeListJSON))), "shape", ""},
	} {
		decided := decision.Decide(test.in)
		for want, step := range map[*string]patch.Step{&test.console: decided.Console, &test.downloads: decided.Downloads} {
			got := ""
			switch {
			case step.Intent != nil:
				got = "shape"
			case step.Result != nil:
				state := states[step.Result.Reason]
				releases := state == patch.NotNeeded || state == patch.OptedOut || state == patch.Blocked || step.Result.Reason == "RolloutStuck"
				got = step.Result.Reason + ": " + step.Result.Message
				if step.Result.State != state || step.Release != releases {
					t.Errorf("%s: %v, release %t, want state %s, release %t", name, step.Result, step.Release, state, releases)
				}
			}
			if !strings.HasPrefix(got, *want) || (*want == "") != (got == "") {
				t.Errorf("%s: %s\nwant %s", name, got, *want)
			}
		}
	}
}

func TestDecideBudget(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	text := func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	for name, test := range map[string]struct {
		minAvailable, maxUnavailable *intstr.IntOrString
		blocks                       bool
	}{
		"empty":               {nil, nil, false},
		"the stock one":       {nil, number(1), false},
		"25% unavailable":     {nil, text("25%"), false},
		"none unavailable":    {nil, number(0), true},
		"0% unavailable":      {nil, text("0%"), true},
		"one available":       {number(1), nil, true},
		"half available":      {text("50%"), nil, true},
		"none available":      {number(0), nil, false},
		"not a number at all": {text("x"), nil, false},
	} {
		in := inputs()
		in.ConsoleBudget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: "console"},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: test.minAvailable, MaxUnavailable: test.maxUnavailable}}
		got := decision.Decide(in).Console
		if got.Intent == nil || got.Release {
			t.Errorf("%s: the shape must not depend on the budget: %+v", name, got)
		}
		if blocked := got.Result.Reason == "DrainBlocked" && got.Result.State == patch.Blocked; blocked != test.blocks {
			t.Errorf("%s: %v, want blocked: %t", name, got.Result, test.blocks)
		}
	}
}
