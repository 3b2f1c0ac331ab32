// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/ingress/internal/fixture"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/topologytest"
)

const stock, own, released = "cluster-ingress-operator", "sno.solonode.github.io/ingress", "sno.solonode.github.io/ingress-released"

// The field owner must not change, because fields of older versions have it.
func TestFieldOwner(t *testing.T) {
	if decision.FieldOwner != own || decision.ReleasedManager != released {
		t.Errorf("field owners %q and %q, want %q and %q", decision.FieldOwner, decision.ReleasedManager, own, released)
	}
}

var intents = map[string]string{onePinned: "one pinned", twoPinned: "two pinned", onlyPlaced: "placed", oneExpressed: "one pinned by an expression",
	onlyOne: "one", nothingSpec: "nothing of the placement", oneTolerated: "one tolerating"}

func decide(t testing.TB, in decision.Inputs) string {
	t.Helper()
	d := decision.Decide(in).IngressController
	out := "nothing"
	switch {
	case d.Intent != nil && d.Release:
		out = "an intent and a release"
	case d.Release:
		out = "release"
	case d.Intent != nil:
		out = fixture.Text(t, d.Intent)
		if name, known := intents[out]; known {
			out = name
		}
	}
	for _, left := range d.Leave {
		out += ", leave " + left.Field + "=" + string(left.Value) + " by " + left.Manager
	}
	if d.Result != nil {
		out += "; " + d.Result.String()
	}
	return out
}

// R-ING-3, R-ING-5: pinned to the control plane or released, with as many routers as the control plane has nodes for.
func TestDecideTopologies(t *testing.T) {
	type cell struct {
		controlPlane, infrastructure configv1.TopologyMode
		placement                    configv1.DefaultPlacement
		source                       ingress.PlacementSource
	}
	check := func(c cell) {
		in := withDefaultPlacement(inputs(c.controlPlane, c.infrastructure), c.placement)
		in.Placement = c.source
		pool, _, err := ingress.RouterPool(*in.Cluster, c.placement, c.source) // TestRouterPool has the pools
		if err != nil {
			t.Fatal(err)
		}
		want := "release; NotNeeded (NotNeeded)"
		switch {
		case c.controlPlane == topologytest.External:
			want = "release; NotNeeded (ExternalControlPlane)"
		case pool == topology.ControlPlanePool && c.controlPlane == topologytest.SR:
			want = "one pinned"
		case pool == topology.ControlPlanePool:
			want = "two pinned"
		}
		if got, _, _ := strings.Cut(decide(t, in), ":"); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
	for _, controlPlane := range topologytest.AllModes {
		for _, infrastructure := range topologytest.AllModes {
			for _, placement := range []configv1.DefaultPlacement{"", fixture.ToWorkers, fixture.ToControlPlane, "Elsewhere"} {
				check(cell{controlPlane, infrastructure, placement, ""})
				check(cell{controlPlane, infrastructure, placement, ingress.PlacementFromTopology})
				check(cell{controlPlane, infrastructure, placement, ingress.PlacementFromDefaultPlacement})
			}
		}
	}
}

// An opt-out is honored also while the topology is unknown, and a person's placement where the router belongs to the
// workers is no conflict.
func TestChecksOrder(t *testing.T) {
	var names []string
	for _, check := range decision.Checks() {
		names = append(names, check.Name)
	}
	want := []string{"Valid", "Exists", "OptedOut", "TopologyKnown", "ControlPlaneInCluster", "RouterOnControlPlane", "PlacementFree"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}

func deleting(ic *operatorv1.IngressController) {
	now := metav1.NewTime(time.Unix(1, 0))
	ic.DeletionTimestamp = &now
}

func noManagedFields(ic *operatorv1.IngressController) { ic.ManagedFields = nil }

func withReplaced(manager, value string) func(*operatorv1.IngressController) {
	return func(ic *operatorv1.IngressController) {
		annotated("sno.solonode.github.io/ingress-replaced", `[{"field":".spec.replicas","manager":"`+manager+`","value":`+value+`}]`)(ic)
		for i, e := range ic.ManagedFields {
			if e.Manager == decision.FieldOwner {
				fields := `{"f:metadata":{"f:annotations":{"f:sno.solonode.github.io/ingress-replaced":{}}},` + string(e.FieldsV1.Raw[1:])
				ic.ManagedFields[i] = entry(e.Manager, e.Operation, fields)
			}
		}
	}
}

// R-ING-4, R-SNO-5, R-SNO-6: a person's placement and number of routers stay, and a release leaves a number that
// matches the topology.
func TestDecide(t *testing.T) {
	const (
		waiting  = "nothing; Waiting (WaitingForObject): "
		none     = waiting + "There is no default IngressController; the ingress operator makes one"
		dying    = waiting + "The default IngressController is being deleted; the ingress operator makes a new one"
		notKnown = "nothing; Waiting (WaitingForInfrastructure): There is no Infrastructure object yet, so the topology is not known; " +
			"nothing is changed until there is"

		optedOut = "; OptedOut (OptedOut): The annotation sno.solonode.github.io/opt-out keeps this module away; " +
			"remove it to have the router pinned by topology"
		hosted  = "; NotNeeded (ExternalControlPlane): The control plane is external: there is no control-plane node to pin the router to"
		workers = "; NotNeeded (NotNeeded): The infrastructure topology is highly available: the router belongs to the workers"

		unknownControlPlane   = `; status.controlPlaneTopology has the unknown value "Quantum", acting on HighlyAvailable`
		unknownInfrastructure = `; status.infrastructureTopology has the unknown value "Quantum", acting on HighlyAvailable`

		byTopology = "release; NotNeeded (NotNeeded): The router belongs to the workers; the infrastructure topology decided, " +
			"defaultPlacement is ControlPlane (--placement=defaultPlacement lets it decide)"
		byDefault = "release; NotNeeded (NotNeeded): The router belongs to the workers; defaultPlacement decided, which is Workers, " +
			"the ingress operator's default; the infrastructure topology disagrees (--placement=topology lets it decide)"

		leftOne = "release, leave .spec.replicas=1 by " + released
		leftTwo = "release, leave .spec.replicas=2 by " + released
	)
	invalid := func(text string) string { return "nothing; Failed (Invalid): The inputs cannot be understood: " + text }
	blocked := func(what, field, managers string) string {
		return what + "; Blocked (FieldOwnedByOther): " + field + " is owned by " + managers +
			" and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts"
	}
	unsupported := invalid(ingress.ErrNodeSelector.Error() + `; it belongs to "oc"`)
	elsewhere := func(managers string) string { return blocked("release", ".spec.nodePlacement", managers) }
	scaled := func(managers string) string { return blocked("placed", ".spec.replicas", managers) }

	type change = func(*operatorv1.IngressController)
	owned := func(more ...change) []change {
		return append([]change{fixture.Replicas(1), fixture.Placed(fixture.Pinned(t)), ownedBy(own, bothJSON)}, more...)
	}
	optOut := optedOutOf("all")
	byStock, byPerson, byReleased := ownedBy(stock, replicasJSON), ownedBy("oc", replicasJSON), ownedBy(released, replicasJSON)
	narrowedBy := func(manager string) []change {
		return []change{fixture.Labelled(narrowed(t).NodeSelector), ownedBy(manager, `{"f:spec":{"f:nodePlacement":{"f:nodeSelector":{}}}}`)}
	}
	movedBy := func(manager string) []change {
		return []change{fixture.Placed(fixture.Moved()), ownedBy(manager, placedJSON)}
	}
	expressed := func(label string, operator metav1.LabelSelectorOperator, values ...string) []change {
		return []change{fixture.Labelled(fixture.Expressing(label, operator, values...)), ownedBy("oc", placedJSON)}
	}
	unreadable := ownedBy("oc", `{"f:spec":7}`)
	renamed := func(namespace, name string) change {
		return func(ic *operatorv1.IngressController) { ic.Namespace, ic.Name = namespace, name }
	}

	for name, test := range map[string]struct {
		in   decision.Inputs
		want string
	}{
		// The checks.
		"unknown --placement": {with(inputs(topologytest.SR, topologytest.SR), func(in *decision.Inputs) { in.Placement = "both" }),
			invalid(`unknown placement source: "both"; want "topology" or "defaultPlacement"`)},
		"a Cluster that was not read": {with(inputs(topologytest.SR, topologytest.SR), func(in *decision.Inputs) { in.Cluster = &topology.Cluster{} }),
			invalid(`no topology: read the Cluster with topology.FromInfrastructure: mode ""`)},
		"another IngressController": {inputs(topologytest.SR, topologytest.SR, renamed("openshift-ingress-operator", "internal")),
			invalid("invalid inputs: IngressController openshift-ingress-operator/internal is not the default one (openshift-ingress-operator/default)")},
		"another namespace": {inputs(topologytest.SR, topologytest.SR, renamed("elsewhere", "default")),
			invalid("invalid inputs: IngressController elsewhere/default is not the default one (openshift-ingress-operator/default)")},
		"another Ingress": {with(withDefaultPlacement(inputs(topologytest.SR, topologytest.SR), ""), func(in *decision.Inputs) { in.Ingress.Name = "second" }),
			invalid(`invalid inputs: Ingress "second" is not the cluster's ("cluster")`)},
		"no inputs":                            {decision.Inputs{}, none},
		"no IngressController":                 {with(inputs(topologytest.SR, topologytest.SR), func(in *decision.Inputs) { in.IngressController = nil }), none},
		"being deleted":                        {inputs(topologytest.SR, topologytest.SR, owned(deleting)...), dying},
		"opted out":                            {inputs(topologytest.SR, topologytest.SR, owned(optOut)...), "release" + optedOut},
		"opted out, topology not known":        {with(inputs(topologytest.SR, topologytest.SR, optedOutOf("console, ingress")), noCluster), "release" + optedOut},
		"topology not known":                   {with(inputs(topologytest.SR, topologytest.SR, owned()...), noCluster), notKnown},
		"external control plane":               {inputs(topologytest.External, topologytest.SR), "release" + hosted},
		"external, defaultPlacement decides":   {with(withDefaultPlacement(inputs(topologytest.External, topologytest.SR), fixture.ToControlPlane), fromDefault), "release" + hosted},
		"highly available":                     {inputs(topologytest.SR, topologytest.HA), "release" + workers},
		"empty":                                {inputs(topologytest.Empty, topologytest.Empty), "release" + workers},
		"unknown infrastructure":               {inputs(topologytest.SR, topologytest.Unknown), "release" + workers + unknownInfrastructure},
		"both unknown":                         {inputs(topologytest.Unknown, topologytest.Unknown), "release" + workers + unknownControlPlane + unknownInfrastructure},
		"topology beats defaultPlacement":      {withDefaultPlacement(inputs(topologytest.SR, topologytest.HA), fixture.ToControlPlane), byTopology},
		"defaultPlacement beats topology":      {with(withDefaultPlacement(inputs(topologytest.SR, topologytest.SR), fixture.ToWorkers), fromDefault), byDefault},
		"a person's placement, nothing to pin": {inputs(topologytest.HA, topologytest.HA, movedBy("oc")...), "release" + workers},

		// Pinned.
		"pinned": {inputs(topologytest.SR, topologytest.SR), "one pinned"},
		"two control-plane nodes, old defaulting": {inputs(topologytest.Dual, topologytest.SR), "two pinned"},
		"pinned already":             {inputs(topologytest.SR, topologytest.SR, owned()...), "one pinned"},
		"the module's old placement": {inputs(topologytest.SR, topologytest.SR, fixture.Placed(fixture.Moved()), ownedBy(own, bothJSON)), "one pinned"},
		"the module's expression":    {inputs(topologytest.SR, topologytest.SR, expressed("node-role.kubernetes.io/infra", "In", "")[0], ownedBy(own, bothJSON)), "one pinned"},
		"another module opted out":   {inputs(topologytest.SR, topologytest.SR, optedOutOf("console")), "one pinned"},
		"defaultPlacement pins":      {with(withDefaultPlacement(inputs(topologytest.SR, topologytest.HA), fixture.ToControlPlane), fromDefault), "one pinned"},
		"empty defaultPlacement":     {with(withDefaultPlacement(inputs(topologytest.SR, topologytest.SR), ""), fromDefault), "one pinned"},
		"no defaultPlacement":        {with(inputs(topologytest.SR, topologytest.SR), fromDefault), "one pinned"},

		// Placements of others.
		"a person's":                  {inputs(topologytest.SR, topologytest.SR, movedBy("oc")...), elsewhere(`"oc"`)},
		"a person's, forced":          {with(inputs(topologytest.SR, topologytest.SR, movedBy("oc")...), forced), "one pinned"},
		"two people's":                {inputs(topologytest.SR, topologytest.SR, append(movedBy("oc"), movedBy("argocd")...)...), elsewhere(`"argocd", "oc"`)},
		"the ingress operator's":      {inputs(topologytest.SR, topologytest.SR, movedBy(stock)...), elsewhere(`"` + stock + `"`)}, // no creation-time default
		"a person's, module's number": {inputs(topologytest.SR, topologytest.SR, append(movedBy("oc"), fixture.Replicas(1), ownedBy(own, replicasJSON))...), elsewhere(`"oc"`)},
		"placement, no managedFields": {inputs(topologytest.SR, topologytest.SR, fixture.Placed(fixture.Moved()), noManagedFields), elsewhere(`"before-first-apply"`)},
		"equal":                       {inputs(topologytest.SR, topologytest.SR, fixture.Placed(fixture.Pinned(t)), ownedBy("oc", placedJSON)), "one pinned"},
		"equal, by an expression": {inputs(topologytest.SR, topologytest.SR, fixture.Placed(pinnedByExpression(t)), ownedBy("oc", placedJSON)),
			"one pinned by an expression"},
		"another, by an expression": {inputs(topologytest.SR, topologytest.SR, expressed("node-role.kubernetes.io/infra", "In", "")...), elsewhere(`"oc"`)},
		// Those that pin to the control plane too.
		"without the tolerations, by an expression": {inputs(topologytest.SR, topologytest.SR, expressed("node-role.kubernetes.io/master", "In", "")...), "one"},
		"without the tolerations, forced": {with(inputs(topologytest.SR, topologytest.SR, expressed("node-role.kubernetes.io/master", "In", "")...), forced),
			"one pinned by an expression"},
		"without the tolerations, three": {inputs(topologytest.SR, topologytest.SR, append(narrowedBy("oc"), fixture.Replicas(3), byPerson)...),
			blocked("nothing of the placement", ".spec.replicas", `"oc"`)},
		"by more labels":                   {inputs(topologytest.SR, topologytest.SR, narrowedBy("oc")...), "one"},
		"by more labels, highly available": {inputs(topologytest.HA, topologytest.HA, narrowedBy("oc")...), "release" + workers},
		"by the newer label":               {inputs(topologytest.SR, topologytest.SR, expressed("node-role.kubernetes.io/control-plane", "In", "")...), "one"},
		"by more tolerations":              {inputs(topologytest.SR, topologytest.SR, fixture.Placed(tolerating(t, infraToleration)), ownedBy("oc", placedJSON)), "one"},
		"more labels beside the module's tolerations": {inputs(topologytest.SR, topologytest.SR, fixture.Placed(narrowed(t)), ownedBy(own, tolerationsJSON), ownedBy("oc",
			`{"f:spec":{"f:nodePlacement":{"f:nodeSelector":{}}}}`)), "one tolerating"},
		"the module's own, by more labels": {inputs(topologytest.SR, topologytest.SR, fixture.Placed(narrowed(t)), ownedBy(own, placedJSON)), "one pinned"},
		"unsupported selector":             {inputs(topologytest.SR, topologytest.SR, expressed("a", "Exists")...), unsupported},
		"unsupported selector, forced":     {with(inputs(topologytest.SR, topologytest.SR, expressed("a", "Exists")...), forced), "one pinned"},
		"unreadable ownership":             {inputs(topologytest.SR, topologytest.SR, fixture.Placed(fixture.Moved()), unreadable), invalid("...")},

		// Numbers of routers of others.
		"the operator's, from creation":      {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(2), byStock), "one pinned"},
		"the operator's, by another name":    {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(2), ownedBy("ingress-operator", replicasJSON)), "one pinned"},
		"one that a release left":            {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(2), byReleased), "one pinned"},
		"a person's equal number":            {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(1), byPerson), "one pinned"},
		"a person's number":                  {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(3), byPerson), scaled(`"oc"`)},
		"a person's number, forced":          {with(inputs(topologytest.SR, topologytest.SR, fixture.Replicas(3), byPerson), forced), "one pinned"},
		"a person's and the operator's":      {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(3), byStock, ownedBy("kubectl-edit", replicasJSON)), scaled(`"kubectl-edit"`)},
		"a person's zero":                    {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(0), byPerson), scaled(`"oc"`)},
		"a number, no managedFields":         {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(3), noManagedFields), scaled(`"before-first-apply"`)},
		"unreadable ownership of the number": {inputs(topologytest.SR, topologytest.SR, fixture.Replicas(3), unreadable), invalid("...")},

		// Releases.
		"not owned":                                {inputs(topologytest.HA, topologytest.HA, fixture.Replicas(1), byStock), "release" + workers},
		"co-owned by the operator":                 {inputs(topologytest.HA, topologytest.HA, owned(byStock)...), leftTwo + workers},
		"co-owned, external control plane":         {inputs(topologytest.External, topologytest.HA, owned(byStock)...), leftTwo + hosted},
		"owned by the module alone":                {inputs(topologytest.HA, topologytest.HA, owned()...), "release" + workers},
		"co-owned by a person":                     {inputs(topologytest.HA, topologytest.HA, owned(byStock, byPerson)...), "release" + workers},
		"the replaced number matches":              {inputs(topologytest.HA, topologytest.HA, owned(withReplaced(stock, "2"))...), "release" + workers},
		"the replaced number is stale":             {inputs(topologytest.HA, topologytest.HA, owned(withReplaced(stock, "1"))...), leftTwo + workers},
		"the operator pins to the only node":       {withDefaultPlacement(inputs(topologytest.SR, topologytest.HA, owned(byStock)...), fixture.ToControlPlane), byTopology},
		"the number matches":                       {with(withDefaultPlacement(inputs(topologytest.SR, topologytest.SR, owned(byStock)...), fixture.ToWorkers), fromDefault), byDefault},
		"the annotation is not the module's":       {inputs(topologytest.HA, topologytest.HA, owned(annotated(patch.ReplacedAnnotation("ingress"), "[]"))...), "release" + workers},
		"opted out after a change of the topology": {inputs(topologytest.HA, topologytest.HA, owned(optOut, byStock)...), "release" + optedOut},
		"opted out, replaced the operator's":       {inputs(topologytest.SR, topologytest.SR, owned(optOut, withReplaced(stock, "2"))...), "release" + optedOut},
		"opted out, replaced its own, stale":       {inputs(topologytest.SR, topologytest.SR, owned(optOut, withReplaced(released, "2"))...), leftOne + optedOut},
		"opted out, co-owned by a release, stale":  {inputs(topologytest.HA, topologytest.HA, owned(optOut, byReleased)...), leftTwo + optedOut},
		"opted out, replaced, no topology":         {with(inputs(topologytest.SR, topologytest.SR, owned(optOut, withReplaced(released, "2"))...), noCluster), "release" + optedOut},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(t, test.in)
			// "..." stands for the message of a decoder.
			if want, anyText := strings.CutSuffix(test.want, "..."); got != test.want && (!anyText || !strings.HasPrefix(got, want)) {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRestoreReplaced(t *testing.T) {
	number := func(manager, value string) patch.Replaced {
		return patch.Replaced{Field: ".spec.replicas", Manager: manager, Value: []byte(value)}
	}
	placement := patch.Replaced{Field: ".spec.nodePlacement.nodeSelector", Manager: "oc", Value: []byte("1")}
	available := inputs(topologytest.HA, topologytest.HA)
	single := with(withDefaultPlacement(inputs(topologytest.SR, topologytest.SR), fixture.ToWorkers), fromDefault)
	optedOut := inputs(topologytest.SR, topologytest.SR, optedOutOf("ingress"))
	for _, test := range []struct {
		in       decision.Inputs
		replaced patch.Replaced
		want     bool
	}{
		{available, number("oc", "1"), false},
		{available, number("oc", "2"), true},
		{available, placement, true},
		{single, number("oc", "1"), true},
		{single, number("oc", "2"), false},
		{optedOut, number("oc", "1"), true},
		{optedOut, number("oc", "2"), true},
		{optedOut, placement, true},
		{optedOut, number(released, "1"), true},
		{optedOut, number(released, "2"), false},
	} {
		decided := decision.Decide(test.in).IngressController
		if got := decided.Restore(test.replaced); got != test.want {
			t.Errorf("%s: %s %s of %s: restored %v, want %v", decided.Result, test.replaced.Field, test.replaced.Value, test.replaced.Manager, got, test.want)
		}
	}
}

// The client writes the API server's answer into the intent, so intents must not share memory.
func TestDecideIsPure(t *testing.T) {
	for name, build := range map[string]func() decision.Inputs{
		"pins": func() decision.Inputs {
			return inputs(topologytest.SR, topologytest.SR, fixture.Replicas(2), ownedBy(stock, replicasJSON))
		},
		"releases": func() decision.Inputs {
			return inputs(topologytest.HA, topologytest.HA, fixture.Replicas(1), fixture.Placed(fixture.Pinned(t)), ownedBy(own, bothJSON))
		},
		"blocked": func() decision.Inputs {
			return inputs(topologytest.SR, topologytest.SR, fixture.Placed(fixture.Moved()), ownedBy("oc", placedJSON))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := build()
			first, second := decision.Decide(in).IngressController, decision.Decide(in).IngressController
			if diff := cmp.Diff(build(), in); diff != "" {
				t.Errorf("the inputs were changed (-before +after):\n%s", diff)
			}
			want := fixture.Text(t, second.Intent)
			if got := fixture.Text(t, first.Intent); got != want {
				t.Errorf("two calls, two intents:\n%s\n%s", got, want)
			}
			if first.Intent == nil {
				return
			}
			placement := specOf(first).NodePlacement
			placement.NodeSelector.MatchLabels["added"] = "x"
			placement.Tolerations[0].Key = "changed"
			specOf(first).WithReplicas(9)
			for _, later := range []patch.Step{second, decision.Decide(in).IngressController} {
				if got := fixture.Text(t, later.Intent); got != want {
					t.Errorf("changing one intent changed another:\n%s\n%s", got, want)
				}
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, in := range map[string]decision.Inputs{
		"pins":     inputs(topologytest.SR, topologytest.SR, fixture.Replicas(1), fixture.Placed(fixture.Pinned(b)), ownedBy(own, bothJSON)),
		"releases": inputs(topologytest.HA, topologytest.HA),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decision.Decide(in)
			}
		})
	}
}
