package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
)

// The order is part of the behaviour: an opt-out is honored also while the topology is unknown, and nobody's field is an obstacle
// where nothing is to be shaped.
func TestChecksOrder(t *testing.T) {
	shape := []string{"Valid", "Managed", "Exists", "OptedOut", "TopologyKnown", "SingleReplica", "NoConsoleOperator", "FieldsFree"}
	for name, test := range map[string]struct {
		chain patch.Chain[console.Inputs]
		want  []string
	}{"console": {console.Checks(), shape}, "downloads": {console.DownloadsChecks(), append(shape, "ClusterVersionThere", "OverrideFree")}} {
		var names []string
		for _, check := range test.chain {
			names = append(names, check.Name)
		}
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func downloads(d *appsv1.Deployment) func(*console.Inputs) {
	return func(in *console.Inputs) { in.Downloads = d }
}

func consoleIs(d *appsv1.Deployment) func(*console.Inputs) {
	return func(in *console.Inputs) { in.Console = d }
}

func deleting(d *appsv1.Deployment) {
	now := metav1.NewTime(time.Unix(1, 0))
	d.DeletionTimestamp = &now
}

func optedOut(modules string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations = map[string]string{patch.OptOutAnnotation: modules} }
}

func topologies(controlPlane, infrastructure string) func(*console.Inputs) {
	return func(in *console.Inputs) {
		cluster := clusterOf(modeOf(controlPlane), modeOf(infrastructure))
		in.Cluster = &cluster
	}
}

func noCluster(in *console.Inputs) { in.Cluster = nil }
func forced(in *console.Inputs)    { in.ForceConflicts = true }
func scaled(d *appsv1.Deployment)  { d.Spec.Replicas = ptr.To[int32](3) }

func TestChecks(t *testing.T) {
	const (
		missing      = "There is no Deployment; its operator makes one, this module never does"
		optout       = "The annotation sno.solonode.github.io/opt-out keeps this module away; remove it to have the Deployment follow the topology"
		removed      = "The console is Removed by its managementState, so its Deployments are its operator's to delete"
		handsOff     = "The managementState Unmanaged keeps operators away from the console; set it to Managed to have the Deployment follow the topology"
		contradicted = `The entry for the downloads Deployment in .spec.overrides is owned by "oc" and stays as it is, also with --force-conflicts; ` +
			"to have downloads follow the topology, remove the entry there"
		two = "The topology has room for two replicas, which is what the Deployment is made with"
	)
	blockedBy := func(field, managers string) string {
		return field + " is owned by " + managers + " and stays as it is; to have it follow the topology, remove the field there or start with --force-conflicts"
	}
	stockBlocks := `The shape of the Deployment is written by "console", which knows the topology or is to be told; update that operator, or start with --force-conflicts`
	free := ownedBy("installer", containersJSON)

	for name, test := range map[string]struct {
		change                        []func(*console.Inputs)
		console, downloads            string // reasons; empty means content
		consoleMessage, downloadsText string
	}{
		"content": {},
		"not valid": {change: changes(consoleIs(manifest("downloads"))), console: "Invalid", downloads: "Invalid",
			consoleMessage: "The inputs cannot be understood: invalid inputs: Deployment openshift-console/downloads is not openshift-console/console"},
		"missing": {change: changes(consoleIs(nil), downloads(nil)), console: "WaitingForObject", downloads: "WaitingForObject", consoleMessage: missing, downloadsText: missing},
		"being deleted": {change: changes(downloads(manifest("downloads", deleting))), downloads: "WaitingForObject",
			downloadsText: "The Deployment is being deleted; its operator makes a new one"},
		"opted out": {change: changes(consoleIs(manifest("console", optedOut("console"))), noCluster), console: "OptedOut", consoleMessage: optout, downloads: "WaitingForInfrastructure"},
		"opted out by the ClusterVersion": {change: changes(func(in *console.Inputs) {
			in.ClusterVersion.Annotations = map[string]string{patch.OptOutAnnotation: "all"}
		}), downloads: "OptedOut", downloadsText: optout},
		"opted out by the operator's resource": {change: changes(managed(operatorv1.Managed), func(in *console.Inputs) {
			in.Operator.Annotations = map[string]string{patch.OptOutAnnotation: "console"}
		}), console: "OptedOut", downloads: "OptedOut", consoleMessage: optout, downloadsText: optout},
		"managed":                   {change: changes(managed(operatorv1.Managed))},
		"managed by default":        {change: changes(managed(""))},
		"managed by force":          {change: changes(managed(operatorv1.Force))},
		"removed":                   {change: changes(managed(operatorv1.Removed)), console: "NotNeeded", downloads: "NotNeeded", consoleMessage: removed, downloadsText: removed},
		"removed, and gone":         {change: changes(managed(operatorv1.Removed), consoleIs(nil), downloads(nil)), console: "NotNeeded", downloads: "NotNeeded"},
		"unmanaged":                 {change: changes(managed(operatorv1.Unmanaged)), console: "OptedOut", downloads: "OptedOut", consoleMessage: handsOff, downloadsText: handsOff},
		"unmanaged, forced":         {change: changes(managed(operatorv1.Unmanaged), forced), console: "OptedOut", downloads: "OptedOut"},
		"opt-out of another module": {change: changes(consoleIs(manifest("console", free, optedOut("ingress"))))},
		"no Infrastructure": {change: changes(noCluster), console: "WaitingForInfrastructure", downloads: "WaitingForInfrastructure",
			consoleMessage: "There is no Infrastructure object yet, so the topology is not known; nothing is changed until there is"},
		"highly available":        {change: changes(topologies("ha", "sr")), console: "NotNeeded", downloads: "NotNeeded", consoleMessage: two, downloadsText: two},
		"arbiter":                 {change: changes(topologies("arbiter", "sr")), console: "NotNeeded", downloads: "NotNeeded"},
		"two nodes":               {change: changes(topologies("dual", "sr")), console: "NotNeeded", downloads: "NotNeeded"},
		"empty":                   {change: changes(topologies("", "")), console: "NotNeeded", downloads: "NotNeeded"},
		"external, two workers":   {change: changes(topologies("external", "ha")), console: "NotNeeded", downloads: "NotNeeded"},
		"external, one worker":    {change: changes(topologies("external", "sr"))},
		"one node, two workers":   {change: changes(topologies("sr", "ha"))},
		"unknown":                 {change: changes(topologies("unknown", "sr")), console: "NotNeeded", downloads: "NotNeeded", consoleMessage: two + `; status.controlPlaneTopology has the unknown value "Quantum", acting on HighlyAvailable`},
		"stock, two replicas":     {change: changes(consoleIs(manifest("console", ownedBy(stock, manifestJSON)))), console: "FieldOwnedByOther", consoleMessage: stockBlocks},
		"stock by its other name": {change: changes(consoleIs(manifest("console", ownedBy("console-operator", manifestJSON)))), console: "FieldOwnedByOther", consoleMessage: strings.Replace(stockBlocks, `"console"`, `"console-operator"`, 1)},
		"stock that knows":        {change: changes(consoleIs(stockShape("console")), downloads(stockShape("downloads"))), console: "NotNeeded", downloads: "NotNeeded", consoleMessage: "The console operator runs one replica by itself"},
		"stock, anti-affinity": {change: changes(consoleIs(stockShape("console", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity = manifest("console").Spec.Template.Spec.Affinity
		}))), console: "FieldOwnedByOther"},
		"stock, may be down":       {change: changes(consoleIs(stockShape("console", func(d *appsv1.Deployment) { d.Spec.Strategy = strategy(intstr.FromInt32(1), intstr.FromInt32(1)) }))), console: "FieldOwnedByOther"},
		"stock, does not surge":    {change: changes(consoleIs(stockShape("console", func(d *appsv1.Deployment) { d.Spec.Strategy = strategy(intstr.FromInt32(0), intstr.FromInt32(0)) }))), console: "FieldOwnedByOther"},
		"stock, recreates":         {change: changes(consoleIs(stockShape("console", func(d *appsv1.Deployment) { d.Spec.Strategy = appsv1.DeploymentStrategy{Type: "Recreate"} }))), console: "FieldOwnedByOther"},
		"stock, odd percentages":   {change: changes(consoleIs(stockShape("console", func(d *appsv1.Deployment) { d.Spec.Strategy = strategy(intstr.FromInt32(0), intstr.FromString("many")) }))), console: "FieldOwnedByOther"},
		"stock, forced":            {change: changes(consoleIs(manifest("console", ownedBy(stock, manifestJSON))), forced)},
		"stock owns nothing of it": {change: changes(consoleIs(manifest("console", ownedBy(stock, containersJSON))))},
		"a person's replicas":      {change: changes(consoleIs(manifest("console", scaled, ownedBy(person, replicasJSON)))), console: "FieldOwnedByOther", consoleMessage: blockedBy(".spec.replicas", `"oc"`)},
		"a person's replicas of downloads": {change: changes(downloads(manifest("downloads", scaled, ownedBy(cvo, manifestJSON), ownedBy(person, replicasJSON)))),
			downloads: "FieldOwnedByOther", downloadsText: blockedBy(".spec.replicas", `"oc"`)},
		"a person's replicas, forced":       {change: changes(consoleIs(manifest("console", scaled, ownedBy(person, replicasJSON))), forced)},
		"a person's one replica":            {change: changes(consoleIs(manifest("console", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) }, ownedBy(person, replicasJSON))))},
		"the release's console":             {change: changes(consoleIs(manifest("console", ownedBy(cvo, replicasJSON)))), console: "FieldOwnedByOther", consoleMessage: blockedBy(".spec.replicas", `"cluster-version-operator"`)},
		"a console that nobody signed":      {change: changes(consoleIs(manifest("console"))), console: "FieldOwnedByOther", consoleMessage: blockedBy(".spec.replicas", `"before-first-apply"`)},
		"ours":                              {change: changes(consoleIs(shaped("console", ownedBy(us, shapeJSON))))},
		"unreadable":                        {change: changes(consoleIs(manifest("console", ownedBy(person, `{"f:spec":7}`)))), console: "Invalid"},
		"a ClusterVersion that is gone":     {change: changes(func(in *console.Inputs) { in.ClusterVersion = nil }), downloads: "WaitingForObject"},
		"plain Kubernetes":                  {change: changes(func(in *console.Inputs) { in.ClusterVersion = nil }, downloads(manifest("downloads", free)))},
		"override by somebody":              {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(theEntry(true)), person, overrideJSON) })},
		"override contradicted":             {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(theEntry(false)), person, overrideJSON) }), downloads: "FieldOwnedByOther", downloadsText: contradicted},
		"override contradicted, forced":     {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(theEntry(false)), person, overrideJSON) }, forced), downloads: "FieldOwnedByOther", downloadsText: contradicted},
		"override contradicted by nobody":   {change: changes(func(in *console.Inputs) { in.ClusterVersion = version(theEntry(false)) }), downloads: "FieldOwnedByOther", downloadsText: strings.Replace(contradicted, ` by "oc"`, "", 1)},
		"override contradicted, not needed": {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(theEntry(false)), person, overrideJSON) }, downloads(manifest("downloads", free)))},
		"overrides as one value":            {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(otherEntry()), person, wholeListJSON) }), downloads: "FieldOwnedByOther"},
		"overrides as one value, forced":    {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(otherEntry()), person, wholeListJSON) }, forced), downloads: "FieldOwnedByOther"},
		"overrides as one value, with ours": {change: changes(func(in *console.Inputs) {
			in.ClusterVersion = signed(version(otherEntry(), theEntry(true)), person, wholeListJSON)
		})},
		"overrides as one value, still empty": {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(), person, wholeListJSON) })},
		"unreadable ClusterVersion":           {change: changes(func(in *console.Inputs) { in.ClusterVersion = signed(version(), person, `{"f:spec":7}`) }), downloads: "Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(test.change...)
			for _, of := range []struct {
				which, reason, message string
				chain                  patch.Chain[console.Inputs]
			}{{"console", test.console, test.consoleMessage, console.Checks()}, {"downloads", test.downloads, test.downloadsText, console.DownloadsChecks()}} {
				got := of.chain.Run(in)
				switch {
				case got == nil && of.reason != "":
					t.Errorf("%s: nothing to say, want %s", of.which, of.reason)
				case got == nil:
				case got.Reason != of.reason || (of.message != "" && got.Message != of.message):
					t.Errorf("%s: %v\nwant (%s): %s", of.which, got, of.reason, of.message)
				case got.State != states[got.Reason]:
					t.Errorf("%s: %v, want state %s", of.which, got, states[got.Reason])
				}
			}
		})
	}
}

var states = map[string]patch.State{
	"Invalid": patch.Failed, "WaitingForObject": patch.Waiting, "WaitingForInfrastructure": patch.Waiting, "OptedOut": patch.OptedOut,
	"NotNeeded": patch.NotNeeded, "FieldOwnedByOther": patch.Blocked,
}

func changes(f ...func(*console.Inputs)) []func(*console.Inputs) { return f }
