package ingress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

// The order is part of the behaviour: an opt-out is honored also while the topology is unknown, and a person's placement is no
// obstacle where nothing is to be placed.
func TestChecksOrder(t *testing.T) {
	var names []string
	for _, check := range ingress.Checks() {
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

func TestChecks(t *testing.T) {
	without := func(in ingress.Inputs, change func(*ingress.Inputs)) ingress.Inputs {
		change(&in)
		return in
	}
	noCluster := func(in *ingress.Inputs) { in.Cluster = nil }
	fromDefault := func(in *ingress.Inputs) { in.Placement = ingress.PlacementFromDefaultPlacement }
	blockedBy := func(field, managers string) string {
		return field + " is owned by " + managers + " and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts"
	}

	for name, test := range map[string]struct {
		in      ingress.Inputs
		state   patch.State
		reason  string
		message string
	}{
		"content": {in: inputs(sr, sr)},
		"not valid": {
			in:    without(inputs(sr, sr), func(in *ingress.Inputs) { in.Placement = "both" }),
			state: patch.Failed, reason: "Invalid",
			message: `The inputs are not those of a cluster: unknown placement source: "both"; want "topology" or "defaultPlacement"`,
		},
		"no IngressController": {
			in:    without(inputs(sr, sr), func(in *ingress.Inputs) { in.IngressController = nil }),
			state: patch.Waiting, reason: "WaitingForObject", message: "There is no default IngressController; the ingress operator makes one",
		},
		"being deleted": {
			in: inputs(sr, sr, deleting), state: patch.Waiting, reason: "WaitingForObject",
			message: "The default IngressController is being deleted; the ingress operator makes a new one",
		},
		"nothing at all": {
			in: ingress.Inputs{}, state: patch.Waiting, reason: "WaitingForObject",
			message: "There is no default IngressController; the ingress operator makes one",
		},
		"opted out": {
			in: inputs(sr, sr, annotated(patch.OptOutAnnotation, "ingress")), state: patch.OptedOut, reason: "OptedOut",
			message: "The annotation sno.solonode.github.io/opt-out keeps this module away; remove it to have the router pinned by topology",
		},
		"opted out before anything is known": {
			in: without(inputs(sr, sr, annotated(patch.OptOutAnnotation, "console, ingress")), noCluster), state: patch.OptedOut, reason: "OptedOut",
			message: "The annotation sno.solonode.github.io/opt-out keeps this module away; remove it to have the router pinned by topology",
		},
		"opt-out of another module": {in: inputs(sr, sr, annotated(patch.OptOutAnnotation, "console"))},
		"no Infrastructure": {
			in: without(inputs(sr, sr), noCluster), state: patch.Waiting, reason: "WaitingForInfrastructure",
			message: "There is no Infrastructure object yet, so the topology is not known; nothing is changed until there is",
		},
		"external control plane": {
			in: inputs(external, sr), state: patch.NotNeeded, reason: "ExternalControlPlane",
			message: "The control plane is external: there is no control-plane node to pin the router to",
		},
		"external control plane, whatever defaultPlacement says": {
			in:    without(withDefaultPlacement(inputs(external, sr), configv1.DefaultPlacementControlPlane), fromDefault),
			state: patch.NotNeeded, reason: "ExternalControlPlane",
			message: "The control plane is external: there is no control-plane node to pin the router to",
		},
		"highly available": {
			in: inputs(sr, ha), state: patch.NotNeeded, reason: "NotNeeded",
			message: "The infrastructure topology is highly available: the router belongs to the workers",
		},
		"empty": {
			in: inputs(empty, empty), state: patch.NotNeeded, reason: "NotNeeded",
			message: "The infrastructure topology is highly available: the router belongs to the workers",
		},
		"unknown value is reported": {
			in: inputs(sr, unknown), state: patch.NotNeeded, reason: "NotNeeded",
			message: "The infrastructure topology is highly available: the router belongs to the workers" +
				`; status.infrastructureTopology has the unknown value "Quantum", acting on HighlyAvailable`,
		},
		"both unknown values are reported": {
			in: inputs(unknown, unknown), state: patch.NotNeeded, reason: "NotNeeded",
			message: "The infrastructure topology is highly available: the router belongs to the workers" +
				`; status.controlPlaneTopology has the unknown value "Quantum", acting on HighlyAvailable` +
				`; status.infrastructureTopology has the unknown value "Quantum", acting on HighlyAvailable`,
		},
		"topology beats defaultPlacement": {
			in:    withDefaultPlacement(inputs(sr, ha), configv1.DefaultPlacementControlPlane),
			state: patch.NotNeeded, reason: "NotNeeded",
			message: "The router belongs to the workers; the infrastructure topology decided, defaultPlacement is ControlPlane" +
				" (--placement=defaultPlacement lets it decide)",
		},
		"defaultPlacement beats topology": {
			in:    without(withDefaultPlacement(inputs(sr, sr), configv1.DefaultPlacementWorkers), fromDefault),
			state: patch.NotNeeded, reason: "NotNeeded",
			message: "The router belongs to the workers; defaultPlacement decided, which is Workers where nobody chose; the infrastructure topology says otherwise" +
				" (--placement=topology lets it decide)",
		},
		"defaultPlacement pins":      {in: without(withDefaultPlacement(inputs(sr, ha), configv1.DefaultPlacementControlPlane), fromDefault)},
		"empty defaultPlacement":     {in: without(withDefaultPlacement(inputs(sr, sr), ""), fromDefault)},
		"no object with the default": {in: without(inputs(sr, sr), fromDefault)},
		"a person's placement": {
			in: inputs(sr, sr, placed(moved()), ownedBy("oc", placedJSON)), state: patch.Blocked, reason: "FieldOwnedByOther",
			message: blockedBy(".spec.nodePlacement", `"oc"`),
		},
		"two people's placement": {
			in:    inputs(sr, sr, placed(moved()), ownedBy("oc", placedJSON), ownedBy("argocd", placedJSON)),
			state: patch.Blocked, reason: "FieldOwnedByOther", message: blockedBy(".spec.nodePlacement", `"argocd", "oc"`),
		},
		"a placement that the ingress operator chose is not its creation-time default": {
			in: inputs(sr, sr, placed(moved()), ownedBy("cluster-ingress-operator", placedJSON)), state: patch.Blocked, reason: "FieldOwnedByOther",
			message: blockedBy(".spec.nodePlacement", `"cluster-ingress-operator"`),
		},
		"a placement that nobody signed": {
			in:    inputs(sr, sr, placed(moved()), func(ic *operatorv1.IngressController) { ic.ManagedFields = nil }),
			state: patch.Blocked, reason: "FieldOwnedByOther", message: blockedBy(".spec.nodePlacement", `"before-first-apply"`),
		},
		"a person's placement, forced": {
			in: without(inputs(sr, sr, placed(moved()), ownedBy("oc", placedJSON)), func(in *ingress.Inputs) { in.ForceConflicts = true }),
		},
		"a person's placement where nothing is to be placed": {
			in: inputs(ha, ha, placed(moved()), ownedBy("oc", placedJSON)), state: patch.NotNeeded, reason: "NotNeeded",
			message: "The infrastructure topology is highly available: the router belongs to the workers",
		},
		"somebody else's equal placement":                   {in: inputs(sr, sr, placed(pinned(t)), ownedBy("oc", placedJSON))},
		"somebody else's equal placement, by an expression": {in: inputs(sr, sr, placed(pinnedByExpression(t)), ownedBy("oc", placedJSON))},
		"somebody else's other placement, by an expression": {
			in:    inputs(sr, sr, labelled(expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpIn, "")), ownedBy("oc", placedJSON)),
			state: patch.Blocked, reason: "FieldOwnedByOther", message: blockedBy(".spec.nodePlacement", `"oc"`),
		},
		"somebody else's pin without the tolerations, by an expression": {
			in:    inputs(sr, sr, labelled(expressing("node-role.kubernetes.io/master", metav1.LabelSelectorOpIn, "")), ownedBy("oc", placedJSON)),
			state: patch.Blocked, reason: "FieldOwnedByOther", message: blockedBy(".spec.nodePlacement", `"oc"`),
		},
		"a placement that no operator can follow": {
			in:    inputs(sr, sr, labelled(expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpExists)), ownedBy("oc", placedJSON)),
			state: patch.Failed, reason: "Invalid",
			message: "The node selector in spec.nodePlacement is not a map of labels; use matchLabels, or the operator In with one value; " +
				"it belongs to oc",
		},
		"a placement that no operator can follow, forced": {
			in: without(inputs(sr, sr, labelled(expressing("node-role.kubernetes.io/infra", metav1.LabelSelectorOpExists)), ownedBy("oc", placedJSON)),
				func(in *ingress.Inputs) { in.ForceConflicts = true }),
		},
		"a Cluster that nobody read": {
			in: without(inputs(sr, sr), func(in *ingress.Inputs) { in.Cluster = &topology.Cluster{} }), state: patch.Failed, reason: "Invalid",
			message: `The inputs are not those of a cluster: no topology: read the Cluster with topology.FromInfrastructure: mode ""`,
		},
		"our own placement":       {in: inputs(sr, sr, placed(pinned(t)), ownedBy(ingress.FieldOwner, bothJSON))},
		"our own older placement": {in: inputs(sr, sr, placed(moved()), ownedBy(ingress.FieldOwner, bothJSON))},
		"unreadable ownership": {
			in: inputs(sr, sr, placed(moved()), ownedBy("oc", `{"f:spec":7}`)), state: patch.Failed, reason: "Invalid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ingress.Checks().Run(test.in)
			if test.reason == "" {
				if got != nil {
					t.Errorf("%v, want nothing to say", got)
				}
				return
			}
			if got == nil {
				t.Fatalf("nothing to say, want %s", test.reason)
			}
			if got.State != test.state || got.Reason != test.reason || (test.message != "" && got.Message != test.message) {
				t.Errorf("%v\nwant %s (%s): %s", got, test.state, test.reason, test.message)
			}
		})
	}
}
