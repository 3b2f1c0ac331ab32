// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/framework"
)

var onlyControls = flag.String("controls", "", "regular expression for the ids and names of the controls that TestClusterControls runs")

// shortControls are the controls with -short: one of each way to disturb a cluster with a worker.
const shortControls = "^SNO-(TOP-008|MCO-001)"

// Clusters of the controls: one for changes of the topology and the outage, two for other faults.
const (
	single     = "none-sno"
	withWorker = "none-sno-day1-worker"
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
	// onlyAPI leaves the acts of a cluster of which only the kubeconfig is known. SNO-TOP-012 performs all acts that there
	// are, and takes a minute otherwise.
	onlyAPI bool
	// settle replaces that of disturbedTimes, unless it is zero.
	settle time.Duration
}

func (c clusterControl) String() string { return c.check + " " + c.name }

// clusterControls returns the controls of each check in succession.
func clusterControls() []clusterControl {
	const nodes, restart = "Infrastructure cluster", "its operator and controller do not run until they are restarted"
	routers, consoles := "Deployment openshift-ingress/router-default", "Deployment openshift-console/console"
	all := []clusterControl{
		{check: "SNO-TOP-007", name: "a client keeps writing to the router's Deployment", scenario: several, disturb: keepWriting(routerDeployment()), object: routers, got: "written"},
		{check: "SNO-TOP-007", name: "a client keeps writing to the IngressController", scenario: several, disturb: keepWriting(ingressController()),
			object: "IngressController openshift-ingress-operator/default", got: "written"},
		{check: "SNO-APP-003", name: "a client approves every request of a node", scenario: several, disturb: approveAll,
			object: "CertificateSigningRequest of sno-conformance-unknown", got: "approved"},
		{check: "SNO-MCO-002", name: "a controller acknowledges requests and drains no node", scenario: several, disturb: answerRequests(false),
			object: "Node " + controlPlaneNode, got: "cordoned: false, evicted pods: 0 of"},
		{check: "SNO-MCO-001", name: "a controller drains every node that requests it", scenario: withWorker, disturb: answerRequests(true),
			object: "Node " + controlPlaneNode, got: "cordoned: true, evicted pods: "},
		{check: "SNO-TOP-008", name: "the new pod needs a node without the old one, which must stay", scenario: withWorker, disturb: deadlock,
			object: consoles, got: "a pod is not scheduled"},
		{check: "SNO-TOP-009", name: "a budget allows no eviction", scenario: withWorker, disturb: forbidEvictions, object: consoles, got: "the eviction is refused"},
		{check: "SNO-TOP-009", name: "a quota forbids the replacement of an evicted pod", scenario: withWorker, disturb: forbidPods,
			object: routers, got: "0 of 1 pods are available"},
		{check: "SNO-TOP-010", name: "a node is unschedulable after its restart", scenario: withWorker, disturb: cordonedByRestart,
			object: routers, got: "a pod is not scheduled"},
		{check: "SNO-TOP-014", name: "the upgrade does not complete", scenario: withWorker, disturb: partialUpgrade,
			object: "ClusterVersion version", got: "is Partial"},
		{check: "SNO-TOP-012", name: "a client cordons a node during the run", scenario: withWorker, onlyAPI: true, disturb: cordoned(workerNode),
			object: "Node " + workerNode, got: "is unschedulable true"},
		{check: "SNO-TOP-012", name: "a client leaves a budget", scenario: withWorker, onlyAPI: true, disturb: leaveBudget,
			object: "PodDisruptionBudget openshift-console/" + faultName, got: "created"},
	}
	for _, follows := range []struct {
		check  string
		module framework.Module
	}{
		{"SNO-ING-011", framework.Ingress}, {"SNO-ETC-005", framework.EtcdGuard}, {"SNO-CON-010", framework.Console}, {"SNO-AUT-009", framework.Auth}, {"SNO-APP-004", framework.Approver},
	} {
		// A busy machine may follow too late, also after the restart.
		all = append(all, clusterControl{check: follows.check, name: restart, scenario: single, disturb: stopped(follows.module), object: nodes, got: "followed"})
	}
	// Clients back off after an outage, so it is the last disturbance of its cluster.
	return append(all, clusterControl{check: "SNO-TOP-011", name: "the outage is longer than a leader may be without its Lease", scenario: single, disturb: longOutage,
		object: "Lease " + framework.SystemNamespace + "/" + faultName, got: "lost", settle: cluster.SimulatedTimes().Settle},
		clusterControl{check: "SNO-TOP-011", name: "the controller manager does not return", scenario: single, disturb: withoutControllerManager,
			object: "A new Deployment", got: "has no service account"})
}

// TestClusterControlsAreDeclared compares the catalogue's controls of kind cluster with those that are implemented.
func TestClusterControlsAreDeclared(t *testing.T) {
	var declared, implemented []string
	for _, check := range catalogue.All() {
		for _, control := range check.Controls {
			if check.KindOf(control) == catalogue.KindCluster {
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

// TestClusterControls causes the fault of every control of kind cluster on a cluster with the modules while the check
// runs: it must fail with evidence about the disturbed object. Without the fault it must pass.
func TestClusterControls(t *testing.T) {
	if testing.Short() && *onlyControls == "" {
		*onlyControls = shortControls
	}
	only, err := regexp.Compile(*onlyControls)
	if err != nil {
		t.Fatalf("-controls: %v", err)
	}
	chosen := slices.DeleteFunc(clusterControls(), func(c clusterControl) bool { return !only.MatchString(c.String()) })
	if len(chosen) == 0 {
		t.Fatalf("-controls: %q matches no control", *onlyControls)
	}
	fmt.Fprintf(os.Stdout, "%-11s  %-66s  %-7s  %-12s  %8s\n", "CHECK", "CONTROL", "KIND", "RESULT", "TIME")
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
			for i, control := range controls {
				if i == 0 || controls[i-1].check != control.check {
					u.undisturbed(o, control)
				}
				u.disturbed(o, control)
				u.must(u.settled(u.ctx))
			}
		})
	}
}

// undisturbed runs the check of a control without the fault.
func (u *up) undisturbed(o Options, control clusterControl) {
	u.t.Helper()
	o.Times = cluster.SimulatedTimes()
	began := time.Now()
	result := u.result(u.acts(o, control), control.check, func() {})
	if result.Status != report.Passed {
		u.t.Errorf("%s, without a fault, is %s: %s %+v %+v", control.check, result.Status, result.Reason, result.Evidence, result.Controls)
	}
	row(control.check, "none", "-", string(result.Status), time.Since(began))
}

// disturbedTimes limit the waits for what does not come. A busy machine may make other objects fail as well.
func disturbedTimes() cluster.Times {
	times := cluster.SimulatedTimes()
	times.Settle, times.Converge, times.Upgrade, times.Outage = 8*time.Second, 8*time.Second, 8*time.Second, 3*time.Second
	return times
}

// disturbed runs the check of a control with the fault.
func (u *up) disturbed(o Options, control clusterControl) {
	u.t.Helper()
	if o.Times = disturbedTimes(); control.settle > 0 {
		o.Times.Settle = control.settle
	}
	acts := u.acts(o, control)
	target := acts
	if !control.onlyAPI {
		// The runner copies its target before the disturbance replaces acts.
		target.RestartNode = func(ctx context.Context, node string) error { return acts.RestartNode(ctx, node) }
		target.Outage = func(ctx context.Context, length time.Duration) error { return acts.Outage(ctx, length) }
		target.Upgrade = func(ctx context.Context) error { return acts.Upgrade(ctx) }
	}
	undo, began := undo(nothing), time.Now()
	result := u.result(target, control.check, func() {
		var err error
		if undo, err = control.disturb(u.ctx, u.system, &acts); err != nil {
			u.t.Errorf("%s: disturb the cluster: %v", control, err)
		}
	})
	took := time.Since(began)
	if err := undo(u.ctx); err != nil {
		u.t.Errorf("%s: undo it: %v", control, err)
	}
	got := "detected"
	if !detected(control, result) {
		got = "NOT DETECTED"
		u.t.Errorf("%s: the check is %s, want evidence that %s is %q: %s %+v", control, result.Status, control.object, control.got, result.Reason, result.Evidence)
	}
	row(control.check, control.name, string(catalogue.KindCluster), got, took)
}

func detected(control clusterControl, result report.Result) bool {
	return result.Status == report.Failed && slices.ContainsFunc(result.Evidence, func(e report.Evidence) bool {
		return !e.Held && e.Object == control.object && strings.Contains(e.Got, control.got)
	})
}

// acts returns the cluster as a target of one run.
func (u *up) acts(o Options, control clusterControl) cluster.Target {
	target := u.target(o)
	target.Stop, target.Progress = nil, u.t.Output()
	if control.onlyAPI {
		target.RestartNode, target.SetTopology, target.Outage, target.Upgrade, target.RestartOperator, target.MayDrain = nil, nil, nil, nil, nil, false
	}
	return target
}

// result runs one check. It calls begin before a scheduled check, which runs as soon as the runner starts, and between
// the start and the acts of a disruptive one.
func (u *up) result(target cluster.Target, id string, begin func()) report.Result {
	u.t.Helper()
	check, err := catalogue.Lookup(id)
	u.must(err)
	if check.Tier != catalogue.Disruptive {
		begin()
	}
	run, err := runner.New(u.ctx, target, runner.Selection{Tiers: catalogue.Tiers(), IDs: []string{id}})
	u.must(err)
	defer func() {
		if err := run.Close(u.ctx); err != nil {
			u.t.Errorf("the run leaves something behind: %v", err)
		}
	}()
	u.must(run.Start(u.ctx))
	if check.Tier == catalogue.Disruptive {
		begin()
	}
	result, err := run.Result(u.ctx, id)
	u.must(err)
	return result
}

// row prints a row of the table. `make conformance-controls` runs the tests such that each appears at once.
func row(check, control, kind, result string, took time.Duration) {
	fmt.Fprintf(os.Stdout, "%-11s  %-66s  %-7s  %-12s  %6.1f s\n", check, control, kind, result, took.Seconds())
}
