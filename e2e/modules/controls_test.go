// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
)

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
		implemented = append(implemented, control.check+" "+control.name)
	}
	slices.Sort(declared)
	slices.Sort(implemented)
	if diff := cmp.Diff(declared, implemented); diff != "" {
		t.Errorf("controls (-declared +implemented):\n%s", diff)
	}
}

// disturbedTimes limit the waits for what does not come. A busy machine may make other objects fail as well.
func disturbedTimes() cluster.Times {
	times := cluster.SimulatedTimes()
	times.Settle, times.Converge, times.Upgrade, times.Outage = 8*time.Second, 8*time.Second, 8*time.Second, 3*time.Second
	return times
}

// smokeControls are one of each way to disturb a cluster with a worker.
var smokeControls = []string{"SNO-TOP-008", "SNO-MCO-001"}

// Each control of kind cluster causes its fault on a cluster with the modules while its check runs.
var _ = Describe("A check that evaluates a record", func() {
	for _, name := range []string{single, withWorker, several} {
		Context("on "+name, Ordered, ContinueOnFailure, Label("controls"), func() {
			var shared *system
			BeforeAll(func(ctx SpecContext) { shared = startSystem(ctx, patient(name, embeddedtarget.SNO)) })
			last := ""
			for _, control := range clusterControls() {
				if control.scenario != name {
					continue
				}
				var labels Labels
				if slices.Contains(smokeControls, control.check) {
					labels = Label(suite.Smoke)
				}
				if control.check != last {
					It(control.check+" passes without a fault", labels, func(ctx SpecContext) {
						s := shared.during(ctx)
						target := s.acts(control)
						target.Times = cluster.SimulatedTimes()
						Expect(s.result(target, control.check, func() {})).To(HaveField("Status", report.Passed))
					})
				}
				last = control.check
				It(control.check+" fails when "+control.name, labels, func(ctx SpecContext) { shared.during(ctx).detects(control) })
			}
		})
	}
})

// during returns the system for another spec.
func (s *system) during(ctx context.Context) *system {
	return &system{s.System, ctx, s.kube, s.target}
}

// detects runs the check of a control with the fault. It must fail with evidence about the disturbed object.
func (s *system) detects(control clusterControl) {
	GinkgoHelper()
	DeferCleanup(s.Settled) // when the fault is undone
	acts := s.acts(control)
	if acts.Times = disturbedTimes(); control.settle > 0 {
		acts.Times.Settle = control.settle
	}
	target := acts
	if !control.onlyAPI {
		// The runner copies its target before the disturbance replaces acts.
		target.RestartNode = func(ctx context.Context, node string) error { return acts.RestartNode(ctx, node) }
		target.Outage = func(ctx context.Context, length time.Duration) error { return acts.Outage(ctx, length) }
		target.Upgrade = func(ctx context.Context) error { return acts.Upgrade(ctx) }
	}
	result := s.result(target, control.check, func() { control.disturb(s, &acts) })
	Expect(result.Status).To(Equal(report.Failed), "%s %+v", result.Reason, result.Evidence)
	Expect(slices.ContainsFunc(result.Evidence, func(e report.Evidence) bool {
		return !e.Held && e.Object == control.object && strings.Contains(e.Got, control.got)
	})).To(BeTrue(), "evidence that %s is %q: %s %+v", control.object, control.got, result.Reason, result.Evidence)
}

// acts returns the cluster as a target of one run.
func (s *system) acts(control clusterControl) cluster.Target {
	target := s.target
	if target.Progress = GinkgoWriter; control.onlyAPI {
		target.RestartNode, target.SetTopology, target.Outage, target.Upgrade, target.RestartOperator, target.MayDrain = nil, nil, nil, nil, nil, false
	}
	return target
}

// result runs one check. It calls begin before a scheduled check, which runs as soon as the runner starts, and between
// the start and the acts of a disruptive one.
func (s *system) result(target cluster.Target, id string, begin func()) report.Result {
	GinkgoHelper()
	check := suite.Must(catalogue.Lookup(id))
	var later []func()
	if check.Tier == catalogue.Disruptive {
		later = append(later, begin)
	} else {
		begin()
	}
	return byID(s.run(target, runner.Selection{Tiers: catalogue.Tiers(), IDs: []string{id}}, later...))[id]
}
