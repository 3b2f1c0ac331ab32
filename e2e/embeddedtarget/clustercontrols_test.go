// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/e2e/harness"
	"github.com/solonode/sno/e2e/sample"
)

var onlyControls = flag.String("controls", "", "regular expression for the ids and names of the controls that TestClusterControls runs")

// Kinds of clusters of the controls. Those that the topology or an outage changes have their own.
const (
	withWorker = "none-sno-day1-worker"
	single     = "none-sno"
	several    = "compact"

	controlPlaneNode, workerNode = "master-0", "worker-0"
)

// clusterControl implements a control of kind cluster.
type clusterControl struct {
	check, name string
	scenario    string
	disturb     disturbance
	// object and got are of the evidence that must fail; got is a part.
	object, got string
	// withoutProvider leaves out what the API alone does not allow, which takes a minute in SNO-TOP-012.
	withoutProvider bool
}

func (c clusterControl) String() string { return c.check + " " + c.name }

func clusterControls() []clusterControl {
	const infrastructure, restart = "Infrastructure cluster", "its operator and controller do not run until they are restarted"
	all := []clusterControl{
		{check: "SNO-TOP-007", name: "a client keeps writing to the router's Deployment", scenario: withWorker,
			disturb: keepWriting(routerDeployment()), object: "Deployment openshift-ingress/router-default", got: "written"},
		{check: "SNO-TOP-007", name: "a client keeps writing to the IngressController", scenario: withWorker,
			disturb: keepWriting(ingressController()), object: "IngressController openshift-ingress-operator/default", got: "written"},
		{check: "SNO-APP-003", name: "a client approves every request of a node", scenario: withWorker,
			disturb: approveAll, object: "CertificateSigningRequest of sno-conformance-unknown", got: "approved"},
		{check: "SNO-TOP-008", name: "the new pod needs a node without the old one, which must stay", scenario: withWorker,
			disturb: deadlock, object: "Deployment openshift-console/console", got: "a pod is not scheduled"},
		{check: "SNO-TOP-009", name: "a budget allows no eviction", scenario: withWorker,
			disturb: forbidEvictions, object: "Deployment openshift-console/console", got: "the eviction is refused"},
		{check: "SNO-TOP-009", name: "a quota forbids the replacement of an evicted pod", scenario: withWorker,
			disturb: forbidPods, object: "Deployment openshift-ingress/router-default", got: "0 of 1 pods are available"},
		{check: "SNO-TOP-010", name: "a node is unschedulable after its restart", scenario: withWorker,
			disturb: cordonedByRestart, object: "Deployment openshift-ingress/router-default", got: "a pod is not scheduled"},
		{check: "SNO-TOP-012", name: "a client cordons a node during the run", scenario: withWorker, withoutProvider: true,
			disturb: cordoned(workerNode), object: "Node " + workerNode, got: "is unschedulable true"},
		{check: "SNO-TOP-012", name: "a client leaves a budget", scenario: withWorker, withoutProvider: true,
			disturb: leaveBudget, object: "PodDisruptionBudget openshift-console/" + careless, got: "created"},
		{check: "SNO-MCO-001", name: "a controller drains every node that requests it", scenario: withWorker,
			disturb: answerRequests(true), object: "Node " + controlPlaneNode, got: "cordoned: true"},
		{check: "SNO-TOP-011", name: "the outage is longer than a leader may be without its Lease", scenario: single,
			disturb: longOutage, object: "Lease " + harness.SystemNamespace + "/" + careless, got: "lost"},
		{check: "SNO-MCO-002", name: "a controller acknowledges requests and drains no node", scenario: several,
			disturb: answerRequests(false), object: "Node " + controlPlaneNode, got: "cordoned: false, evicted pods: 0 of"},
	}
	for _, follows := range []struct {
		check  string
		module harness.Module
	}{
		{"SNO-ING-011", harness.Ingress}, {"SNO-ETC-005", harness.EtcdGuard}, {"SNO-CON-010", harness.Console}, {"SNO-AUT-009", harness.Auth}, {"SNO-APP-004", harness.Approver},
	} {
		all = append(all, clusterControl{check: follows.check, name: restart, scenario: single, disturb: stopped(follows.module), object: infrastructure, got: "after a restart"})
	}
	return all
}

// TestClusterControlsAreDeclared compares the controls of kind cluster in the catalogue with those that are implemented.
func TestClusterControlsAreDeclared(t *testing.T) {
	var declared, implemented []string
	for _, check := range checks.Catalogue() {
		for _, control := range check.Controls {
			if check.KindOf(control) == checks.KindCluster {
				declared = append(declared, check.ID+" "+control.Name)
			}
		}
	}
	for _, control := range clusterControls() {
		implemented = append(implemented, control.String())
	}
	slices.Sort(declared)
	slices.Sort(implemented)
	if diff := cmp.Diff(declared, implemented); diff != "" {
		t.Errorf("controls (-declared +implemented):\n%s", diff)
	}
}

// TestClusterControls causes the fault of every control of kind cluster on a cluster with the modules, while the check
// runs: it must fail with evidence about the disturbed object. Without the fault it must pass.
func TestClusterControls(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes; make conformance-controls runs it, and make proof a sample")
	}
	only, err := regexp.Compile(*onlyControls)
	if err != nil {
		t.Fatalf("-controls: %v", err)
	}
	chosen := slices.DeleteFunc(sample.Select(t, clusterControls(), 1), func(c clusterControl) bool { return !only.MatchString(c.String()) })
	if len(chosen) == 0 {
		t.Fatalf("-controls: %q matches no control", *onlyControls)
	}
	for _, name := range []string{single, withWorker, several} {
		controls := slices.DeleteFunc(slices.Clone(chosen), func(c clusterControl) bool { return c.scenario != name })
		if len(controls) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(name, SNO)
			o.Progress = t.Output()
			s, err := start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			u := &up{s, t, t.Context()}
			u.undisturbed(o, controls)
			for _, control := range controls {
				u.disturbed(o, control)
			}
		})
	}
}

// undisturbed runs the checks of all controls together.
func (u *up) undisturbed(o Options, controls []clusterControl) {
	u.t.Helper()
	o.Times = checks.SimulatedTimes()
	target := u.target(o)
	if !slices.ContainsFunc(controls, func(c clusterControl) bool { return !c.withoutProvider }) {
		withoutProvider(&target)
	}
	var ids []string
	for _, control := range controls {
		ids = append(ids, control.check)
	}
	began := time.Now()
	for id, result := range u.results(target, ids, func() {}) {
		if result.Status != report.Passed {
			u.t.Errorf("%s, without a fault, is %s: %s %+v %+v", id, result.Status, result.Reason, result.Evidence, result.Controls)
		}
	}
	u.row(time.Since(began), strings.Join(slices.Compact(ids), " "), "no fault", "passed")
}

// disturbedTimes limit the waits for what does not come. A busy machine may make other objects fail as well.
func disturbedTimes() checks.Times {
	times := checks.SimulatedTimes()
	times.Settle, times.Converge, times.Outage = 12*time.Second, 8*time.Second, 3*time.Second
	return times
}

func (u *up) disturbed(o Options, control clusterControl) {
	u.t.Helper()
	o.Times = disturbedTimes()
	acts := u.target(o)
	if control.withoutProvider {
		withoutProvider(&acts)
	}
	target := acts
	// The runner copies the target, and the disturbance of a disruptive check begins later.
	if acts.RestartNode != nil {
		target.RestartNode = func(ctx context.Context, node string) error { return acts.RestartNode(ctx, node) }
		target.Outage = func(ctx context.Context, length time.Duration) error { return acts.Outage(ctx, length) }
	}
	undo, began := undo(nothing), time.Now()
	result := u.results(target, []string{control.check}, func() {
		var err error
		undo, err = control.disturb(u.ctx, u.system, &acts)
		if err != nil {
			u.t.Errorf("%s: disturb the cluster: %v", control, err)
		}
	})[control.check]
	took := time.Since(began)
	if err := undo(u.ctx); err != nil {
		u.t.Errorf("%s: undo it: %v", control, err)
	}
	got := fmt.Sprintf("NOT DETECTED: %s %s", result.Status, result.Reason)
	if detected(control, result) {
		got = "detected"
	} else {
		u.t.Errorf("%s: the check is %s, want evidence that %s is %q: %s %+v", control, result.Status, control.object, control.got, result.Reason, result.Evidence)
	}
	u.row(took, control.check, control.name, got)
	u.must(u.settled(u.ctx))
}

func detected(control clusterControl, result report.Result) bool {
	return result.Status == report.Failed && slices.ContainsFunc(result.Evidence, func(e report.Evidence) bool {
		return !e.Held && e.Object == control.object && strings.Contains(e.Got, control.got)
	})
}

// withoutProvider leaves the acts of a cluster that is only known by its kubeconfig.
func withoutProvider(target *checks.Target) {
	target.RestartNode, target.SetTopology, target.Outage, target.RestartOperator, target.MayDrain = nil, nil, nil, nil, false
}

// results runs checks of one tier. It calls begin before checks of the scheduled tier, and for disruptive ones between the read of
// the cluster and the first act.
func (u *up) results(target checks.Target, ids []string, begin func()) map[string]report.Result {
	u.t.Helper()
	target.Stop, target.Progress = nil, u.t.Output()
	var tiers []checks.Tier
	for _, id := range ids {
		check, err := checks.Lookup(id)
		u.must(err)
		tiers = append(tiers, check.Tier)
	}
	disruptive := slices.Contains(tiers, checks.Disruptive)
	if !disruptive {
		begin()
	}
	runner, err := checks.NewRunner(u.ctx, target, checks.Selection{Tiers: checks.Tiers(), IDs: ids})
	u.must(err)
	defer func() {
		if err := runner.Close(u.ctx); err != nil {
			u.t.Errorf("the run leaves something behind: %v", err)
		}
	}()
	u.must(runner.Start(u.ctx))
	if disruptive {
		begin()
	}
	results := map[string]report.Result{}
	for _, check := range checks.Catalogue() {
		if slices.Contains(ids, check.ID) {
			results[check.ID], err = runner.Result(u.ctx, check.ID)
			u.must(err)
		}
	}
	return results
}

func (u *up) row(took time.Duration, check, control, result string) {
	fmt.Printf("%-11s  %-66s  %-7s  %5.1f s  %s\n", check, control, checks.KindCluster, took.Seconds(), result)
}
