package console_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
)

// What is written, by hand and not by the code under test.
const (
	overrideIntent = `{"kind":"ClusterVersion","apiVersion":"config.openshift.io/v1","metadata":{"name":"version"},"spec":{"overrides":[` +
		`{"kind":"Deployment","group":"apps","namespace":"openshift-console","name":"downloads","unmanaged":true}]}}`
	tolerationsJSON = `"tolerations":[{"key":"node-role.kubernetes.io/master","operator":"Exists","effect":"NoSchedule"},` +
		`{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":120},` +
		`{"key":"node-role.kubernetes.io/control-plane","operator":"Exists","effect":"NoSchedule"}]`
	specHead = `"spec":{"replicas":1,"template":{"spec":{`
	specTail = `}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}}}`
)

func shapeIntent(name string) string {
	return `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"` + name + `","namespace":"openshift-console"},` + specHead +
		`"nodeSelector":{"kubernetes.io/os":"linux","node-role.kubernetes.io/master":""},` + tolerationsJSON + specTail
}

// givesWay is the same while old pods may be there whose anti-affinity keeps the new one out.
func givesWay(name string) string {
	return strings.Replace(shapeIntent(name), `"maxUnavailable":0`, `"maxUnavailable":1`, 1)
}

// decided is a Decision as text.
type decided struct {
	Override                                string
	OverrideRelease                         bool
	Downloads, Console                      string
	DownloadsUnset, ConsoleUnset            []string
	DownloadsRelease, ConsoleRelease        bool
	DownloadsReason, ConsoleReason, Overall string
}

func decide(t testing.TB, in console.Inputs) decided {
	t.Helper()
	d := console.Decide(in)
	out := decided{OverrideRelease: d.ClusterVersion.Release, DownloadsUnset: d.Downloads.Unset, ConsoleUnset: d.Console.Unset,
		DownloadsRelease: d.Downloads.Release, ConsoleRelease: d.Console.Release}
	if d.ClusterVersion.Intent != nil {
		out.Override = text(t, d.ClusterVersion.Intent)
	}
	if d.Downloads.Intent != nil {
		out.Downloads = text(t, d.Downloads.Intent)
	}
	if d.Console.Intent != nil {
		out.Console = text(t, d.Console.Intent)
	}
	for _, of := range []struct {
		result *patch.Result
		reason *string
	}{{d.Downloads.Result, &out.DownloadsReason}, {d.Console.Result, &out.ConsoleReason}, {d.Result(), &out.Overall}} {
		if of.result != nil {
			*of.reason = of.result.Reason
		}
	}
	return out
}

// managed adds the console operator's own resource with that managementState.
func managed(state operatorv1.ManagementState) func(*console.Inputs) {
	return func(in *console.Inputs) {
		in.Operator = &operatorv1.Console{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		in.Operator.Spec.ManagementState = state
	}
}

func clusterVersion(cv *configv1.ClusterVersion) func(*console.Inputs) {
	return func(in *console.Inputs) { in.ClusterVersion = cv }
}

func TestDecide(t *testing.T) {
	const affinity = ".spec.template.spec.affinity"
	const antiAffinity = affinity + ".podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	quiet := consoleIs(stockShape("console")) // the console Deployment has nothing to say
	ourEntry := func() *configv1.ClusterVersion { return signed(version(theEntry(true)), us, overrideJSON) }
	taken := shaped("downloads", ownedBy(cvo, containersJSON), ownedBy(us, shapeJSON))
	rolling := func(done bool) *appsv1.Deployment {
		d := shaped("downloads", ownedBy(cvo, containersJSON), ownedBy(us, shapeJSON))
		d.Spec.Strategy = strategy(intstr.FromInt32(1), intstr.FromInt32(1))
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
		if !done {
			d.Status.Replicas = 2
		}
		return d
	}
	consoleSays := decided{ConsoleRelease: true, ConsoleReason: "NotNeeded"}
	with := func(f func(*decided)) decided { d := consoleSays; f(&d); return d }
	atHA := topologies("ha", "ha")

	for name, test := range map[string]struct {
		change []func(*console.Inputs)
		want   decided
	}{
		"first the override": {changes(quiet), with(func(d *decided) {
			d.Override, d.DownloadsReason, d.Overall = overrideIntent, "TakingOver", "TakingOver"
		})},
		"then wait for the cluster-version-operator": {changes(quiet, clusterVersion(unobserved(ourEntry()))), with(func(d *decided) {
			d.Override, d.DownloadsReason, d.Overall = overrideIntent, "TakingOver", "TakingOver"
		})},
		"then the shape": {changes(quiet, clusterVersion(ourEntry())), with(func(d *decided) {
			d.Override, d.Downloads, d.DownloadsUnset, d.Overall = overrideIntent, givesWay("downloads"), []string{antiAffinity, affinity}, ""
		})},
		"then again, until the old pods are gone": {changes(quiet, clusterVersion(ourEntry()), downloads(rolling(false))), with(func(d *decided) {
			d.Override, d.Downloads, d.Overall = overrideIntent, givesWay("downloads"), ""
		})},
		"then the shape without an outage": {changes(quiet, clusterVersion(ourEntry()), downloads(rolling(true))), with(func(d *decided) {
			d.Override, d.Downloads, d.Overall = overrideIntent, shapeIntent("downloads"), ""
		})},
		"then nothing new": {changes(quiet, clusterVersion(ourEntry()), downloads(taken)), with(func(d *decided) {
			d.Override, d.Downloads, d.Overall = overrideIntent, shapeIntent("downloads"), ""
		})},
		"nothing new while somebody edits the ClusterVersion": {changes(quiet, clusterVersion(unobserved(ourEntry())), downloads(taken)), with(func(d *decided) {
			d.Override, d.Downloads, d.Overall = overrideIntent, shapeIntent("downloads"), ""
		})},
		"the override was taken off again": {changes(quiet, downloads(taken)), with(func(d *decided) {
			d.Override, d.DownloadsReason, d.Overall = overrideIntent, "TakingOver", "TakingOver"
		})},
		"somebody else's override serves": {changes(quiet, clusterVersion(signed(version(theEntry(true)), person, overrideJSON))), with(func(d *decided) {
			d.Downloads, d.DownloadsUnset, d.Overall = givesWay("downloads"), []string{antiAffinity, affinity}, ""
		})},
		"somebody else's override is not seen yet": {changes(quiet, clusterVersion(unobserved(signed(version(theEntry(true)), person, overrideJSON)))), with(func(d *decided) {
			d.DownloadsReason, d.Overall = "TakingOver", "TakingOver"
		})},
		"contradicted, forced: force does not reach the ClusterVersion": {changes(quiet, forced, clusterVersion(signed(version(theEntry(false)), person, overrideJSON)), consoleIs(nil)), decided{
			DownloadsRelease: true, DownloadsReason: "FieldOwnedByOther", ConsoleReason: "WaitingForObject", Overall: "FieldOwnedByOther"}},
		"removed: everything is given back": {changes(quiet, managed(operatorv1.Removed), clusterVersion(ourEntry()), downloads(taken)), decided{
			ConsoleRelease: true, ConsoleReason: "NotNeeded", DownloadsRelease: true, DownloadsReason: "NotNeeded", Overall: "NotNeeded"}},
		"removed, and gone": {changes(managed(operatorv1.Removed), clusterVersion(ourEntry()), downloads(nil), consoleIs(nil)), decided{
			OverrideRelease: true, ConsoleRelease: true, ConsoleReason: "NotNeeded", DownloadsRelease: true, DownloadsReason: "NotNeeded", Overall: "NotNeeded"}},
		"unmanaged: the shape is given back first": {changes(quiet, managed(operatorv1.Unmanaged), clusterVersion(ourEntry()), downloads(taken)), decided{
			ConsoleRelease: true, ConsoleReason: "OptedOut", DownloadsRelease: true, DownloadsReason: "OptedOut", Overall: "OptedOut"}},
		"unmanaged: then the override": {changes(quiet, managed(operatorv1.Unmanaged), clusterVersion(ourEntry())), decided{
			OverrideRelease: true, ConsoleRelease: true, ConsoleReason: "OptedOut", DownloadsRelease: true, DownloadsReason: "OptedOut", Overall: "OptedOut"}},
		"contradicted": {changes(quiet, clusterVersion(signed(version(theEntry(false)), person, overrideJSON))), with(func(d *decided) {
			d.DownloadsRelease, d.DownloadsReason, d.Overall = true, "FieldOwnedByOther", "FieldOwnedByOther"
		})},
		"nobody signed downloads": {changes(quiet, downloads(shaped("downloads"))), with(func(d *decided) {
			d.Override, d.DownloadsReason, d.Overall = overrideIntent, "TakingOver", "TakingOver"
		})},
		"the release does not bring downloads": {changes(quiet, downloads(manifest("downloads", ownedBy("installer", containersJSON)))), with(func(d *decided) {
			d.Downloads, d.DownloadsUnset, d.Overall = givesWay("downloads"), []string{antiAffinity, affinity}, ""
		})},
		"plain Kubernetes": {changes(clusterVersion(nil), downloads(manifest("downloads", ownedBy("installer", containersJSON)))), decided{
			Downloads: givesWay("downloads"), DownloadsUnset: []string{antiAffinity, affinity}, Console: givesWay("console"), ConsoleUnset: []string{antiAffinity, affinity}}},
		"letting go, first the shape": {changes(quiet, atHA, clusterVersion(ourEntry()), downloads(taken)), with(func(d *decided) {
			d.DownloadsRelease, d.DownloadsReason, d.Overall = true, "NotNeeded", "NotNeeded"
		})},
		"letting go waits for the cluster-version-operator": {changes(quiet, atHA, clusterVersion(unobserved(ourEntry())), downloads(taken)), with(func(d *decided) {
			d.DownloadsReason, d.Overall = "GivingBack", "GivingBack"
		})},
		"letting go, then the override": {changes(quiet, atHA, clusterVersion(ourEntry())), with(func(d *decided) {
			d.OverrideRelease, d.DownloadsRelease, d.DownloadsReason, d.Overall = true, true, "NotNeeded", "NotNeeded"
		})},
		"letting go of nothing": {changes(quiet, atHA, clusterVersion(version(others()...))), with(func(d *decided) {
			d.DownloadsRelease, d.DownloadsReason, d.Overall = true, "NotNeeded", "NotNeeded"
		})},
		"somebody else's override is not ours to remove": {changes(quiet, atHA, clusterVersion(signed(version(theEntry(true)), person, overrideJSON))), with(func(d *decided) {
			d.DownloadsRelease, d.DownloadsReason, d.Overall = true, "NotNeeded", "NotNeeded"
		})},
		"a person scales downloads: the override protects that": {changes(quiet, clusterVersion(ourEntry()),
			downloads(manifest("downloads", scaled, ownedBy(cvo, containersJSON), ownedBy(person, replicasJSON)))), with(func(d *decided) {
			d.DownloadsRelease, d.DownloadsReason, d.Overall = true, "FieldOwnedByOther", "FieldOwnedByOther"
		})},
		"a console operator takes over: the override goes": {changes(quiet, clusterVersion(ourEntry()),
			downloads(manifest("downloads", ownedBy(cvo, containersJSON), ownedBy(stock, manifestJSON)))), with(func(d *decided) {
			d.OverrideRelease, d.DownloadsRelease, d.DownloadsReason, d.Overall = true, true, "FieldOwnedByOther", "FieldOwnedByOther"
		})},
		"deleted in the middle: the override goes": {changes(quiet, clusterVersion(ourEntry()), downloads(nil)), with(func(d *decided) {
			d.OverrideRelease, d.DownloadsReason, d.Overall = true, "WaitingForObject", "WaitingForObject"
		})},
		"being deleted: the override goes, whatever the topology": {changes(quiet, noCluster, clusterVersion(ourEntry()),
			downloads(shaped("downloads", deleting, ownedBy(us, shapeJSON)))), decided{
			OverrideRelease: true, DownloadsReason: "WaitingForObject", ConsoleReason: "WaitingForInfrastructure", Overall: "WaitingForInfrastructure"}},
		"missing: no override": {changes(quiet, downloads(nil)), with(func(d *decided) {
			d.DownloadsReason, d.Overall = "WaitingForObject", "WaitingForObject"
		})},
		"topology unknown: everything stays": {changes(noCluster, clusterVersion(ourEntry()), downloads(taken)), decided{
			DownloadsReason: "WaitingForInfrastructure", ConsoleReason: "WaitingForInfrastructure", Overall: "WaitingForInfrastructure"}},
		"ClusterVersion gone: everything stays": {changes(quiet, clusterVersion(nil), downloads(taken)), with(func(d *decided) {
			d.DownloadsReason, d.Overall = "WaitingForObject", "WaitingForObject"
		})},
		"unreadable ClusterVersion: everything stays": {changes(quiet, atHA, clusterVersion(signed(version(), person, `{"f:spec":7}`)), downloads(taken)), with(func(d *decided) {
			d.DownloadsReason, d.Overall = "Invalid", "Invalid"
		})},
		"unreadable downloads: everything stays": {changes(quiet, clusterVersion(ourEntry()), downloads(manifest("downloads", ownedBy(cvo, `{"f:spec":7}`)))), with(func(d *decided) {
			d.DownloadsReason, d.Overall = "Invalid", "Invalid"
		})},
		"opted out": {changes(quiet, clusterVersion(ourEntry()), downloads(shaped("downloads", optedOut("console"), ownedBy(us, shapeJSON)))), with(func(d *decided) {
			d.DownloadsRelease, d.DownloadsReason, d.Overall = true, "OptedOut", "OptedOut"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(test.change...)
			before := text(t, in)
			if diff := cmp.Diff(test.want, decide(t, in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(test.want, decide(t, in)); diff != "" {
				t.Errorf("the second time (-want +got):\n%s", diff)
			}
			if after := text(t, in); after != before {
				t.Errorf("the inputs were changed:\n%s", cmp.Diff(before, after))
			}
		})
	}
}

// With an External control plane the shape has no role in its selector; a selector or toleration with nothing else in it has to go.
func TestDecideExternal(t *testing.T) {
	bare := manifest("downloads", ownedBy("installer", containersJSON), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/master": ""}
		d.Spec.Template.Spec.Tolerations = d.Spec.Template.Spec.Tolerations[:1]
		d.Spec.Template.Spec.Affinity = nil
	})
	got := decide(t, inputs(clusterVersion(nil), topologies("external", "sr"), downloads(bare)))
	want := `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"downloads","namespace":"openshift-console"},"spec":{"replicas":1,` +
		`"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}}}`
	if got.Downloads != want {
		t.Errorf("intent %s\nwant %s", got.Downloads, want)
	}
	if diff := cmp.Diff([]string{".spec.template.spec.nodeSelector", ".spec.template.spec.tolerations"}, got.DownloadsUnset); diff != "" {
		t.Errorf("unset (-want +got):\n%s", diff)
	}
}

func TestDecideBudget(t *testing.T) {
	number, percent := intstr.FromInt32, intstr.FromString
	budget := func(least, most *intstr.IntOrString) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-console", Name: "console"},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: least, MaxUnavailable: most}}
	}
	at := func(v intstr.IntOrString) *intstr.IntOrString { return &v }
	for name, test := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		blocks bool
	}{
		"none":                {nil, false},
		"says nothing":        {budget(nil, nil), false},
		"the stock one":       {budget(nil, at(number(1))), false},
		"25% unavailable":     {budget(nil, at(percent("25%"))), false},
		"none unavailable":    {budget(nil, at(number(0))), true},
		"0% unavailable":      {budget(nil, at(percent("0%"))), true},
		"one available":       {budget(at(number(1)), nil), true},
		"half available":      {budget(at(percent("50%")), nil), true},
		"none need be there":  {budget(at(number(0)), nil), false},
		"not a number at all": {budget(at(percent("x")), nil), false},
	} {
		in := inputs(func(in *console.Inputs) { in.ConsoleBudget = test.budget })
		got := console.Decide(in).Console
		if got.Intent == nil || got.Release {
			t.Errorf("%s: the shape must not depend on the budget: %+v", name, got)
		}
		if blocked := got.Result != nil && got.Result.Reason == "DrainBlocked" && got.Result.State == patch.Blocked; blocked != test.blocks {
			t.Errorf("%s: %v, want blocked: %t", name, got.Result, test.blocks)
		}
	}
}

func TestNames(t *testing.T) {
	if console.FieldOwner != us {
		t.Errorf("field owner %q: what older versions wrote would belong to nobody", console.FieldOwner)
	}
	if got := console.ShapeFields(); len(got) != 8 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 8 {
		t.Errorf("shape fields %v", got)
	}
}
