// SPDX-License-Identifier: Apache-2.0

package embeddedtarget

import (
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

func given(t *testing.T, commands ...string) framework.Operators {
	t.Helper()
	operators, err := framework.ReadOperators(commands, nil)
	if err != nil {
		t.Fatal(err)
	}
	return operators
}

func build(t *testing.T, program programs.Program) string {
	t.Helper()
	binary, err := programs.Build(t.Context(), program, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// runChecks runs checks on a new cluster.
func runChecks(t *testing.T, o Options, selection runner.Selection) (*system, report.Report) {
	t.Helper()
	ctx := t.Context()
	s, err := start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	target := s.target(o)
	target.Stop = nil // the cleanup
	run, err := runner.New(ctx, target, selection)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := run.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	if err := run.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for _, check := range catalogue.All() {
		if _, err := run.Result(ctx, check.ID); err != nil {
			t.Fatal(err)
		}
	}
	return s, run.Report()
}

func statuses(results iter.Seq[report.Result]) map[string]report.Status {
	all := map[string]report.Status{}
	for result := range results {
		all[result.ID] = result.Status
	}
	return all
}

// A command has the verdicts of the same program as a stand-in, also when the topology changes and it restarts.
func TestGivenOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts two clusters; make proof runs it")
	}
	t.Parallel()
	o := options("cloud-sno-day2-workers", Baseline)
	selection := runner.Selection{Tiers: catalogue.Tiers(), Modules: []string{"ingress"}}
	_, standIn := runChecks(t, o, selection)
	command := build(t, programs.IngressHost) + " --kubeconfig={kubeconfig} --canary=true --min-ready-seconds=1 --stock"
	o.Operators = given(t, "ingress="+command)
	s, got := runChecks(t, o, selection)
	if diff := cmp.Diff(statuses(slices.Values(standIn.Results)), statuses(slices.Values(got.Results))); diff != "" {
		t.Errorf("(-stand-in +command):\n%s", diff)
	}
	if got.Counts[report.Failed] == 0 || got.Counts[report.Passed] == 0 {
		t.Errorf("the checks do not compare anything: %v", got.Counts)
	}
	want := []report.Operator{
		{Module: "ingress", Command: "ingress-operator --stock", StandIn: true}, {Module: "etcdguard", Command: "etcd-operator --stock", StandIn: true},
		{Module: "machineconfig", Command: "machine-config-operator --stock", StandIn: true}, {Module: "console", Command: "console-operator --stock", StandIn: true},
		{Module: "auth", Command: "authentication-operator --stock", StandIn: true}, {Module: "approver", Command: "machine-approver --stock", StandIn: true},
	}
	if diff := cmp.Diff(want, standIn.Operators); diff != "" {
		t.Error(diff)
	}
	want[0] = report.Operator{Module: "ingress", Command: command}
	if diff := cmp.Diff(want, got.Operators); diff != "" {
		t.Error(diff)
	}
	// The report of a cluster that is lost names the same.
	if lost, err := Baseline.Operators(o.Scenario, o.Operators); err != nil || !cmp.Equal(want, lost) {
		t.Errorf("%+v, %v", lost, err)
	}
	for user, expected := range map[string]bool{framework.Ingress.GivenUser(): true, framework.Ingress.HostUser(): false, framework.Console.HostUser(): true} {
		events, _, err := s.Cluster.AuditEvents(t.Context(), 0, embedded.AuditFilter{User: user, WritesOnly: true})
		if err != nil || (len(events) > 0) != expected {
			t.Errorf("user %s has written %d times, want some: %t; %v", user, len(events), expected, err)
		}
	}
}

// Operators run next to the controllers, also where the variant has no host. One that vendors the module and one that
// does not have no failure.
func TestGivenNextToControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster; make proof runs it")
	}
	t.Parallel()
	o := options("none-sno-day2-workers", SNO)
	o.Operators = given(t, "ingress="+build(t, programs.IngressHost)+" --kubeconfig {kubeconfig} --min-ready-seconds 1",
		"etcd="+build(t, programs.EtcdHost)+" --kubeconfig {kubeconfig} --stock")
	s, got := runChecks(t, o, runner.Selection{Tiers: []catalogue.Tier{catalogue.Static, catalogue.Scheduled}})
	for _, result := range got.Results {
		if result.Status == report.Failed || result.Status == report.Inconclusive {
			t.Errorf("%s is %s: %s %+v", result.ID, result.Status, result.Reason, result.Evidence)
		}
	}
	for _, module := range []framework.Module{framework.Ingress, framework.EtcdGuard} {
		for _, name := range []string{module.Host().Name, module.Controller().Name} {
			if program := s.Cluster.Program(name); program == nil || program.PID() == 0 {
				t.Errorf("%s does not run", name)
			}
		}
	}
	standIns := map[string]bool{}
	for _, operator := range got.Operators {
		standIns[operator.Module] = operator.StandIn
	}
	if want := map[string]bool{"ingress": false, "etcdguard": false, "console": true, "auth": true}; !maps.Equal(want, standIns) {
		t.Errorf("stand-ins: %v, want %v", standIns, want)
	}
}

// The checks of an operator that does nothing are inconclusive, as are those of all operands together, and only these.
func TestOperatorThatDoesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for operands that nothing creates; make proof runs it")
	}
	t.Parallel()
	o := options("none-sno", SNO)
	o.Times.Settle = cluster.SimulatedTimes().Settle
	o.Operators = given(t, "ingress=sleep 100000")
	_, got := runChecks(t, o, runner.Selection{Tiers: []catalogue.Tier{catalogue.Static, catalogue.Scheduled}, Modules: []string{"ingress", "console", "auth", "topology"}})
	var ran []string
	for _, result := range got.Results {
		if result.Status == report.Skipped || result.Status == report.NotApplicable {
			continue
		}
		ran = append(ran, result.ID)
		want := report.Passed
		if result.Module == "ingress" || result.Module == "topology" {
			want = report.Inconclusive
		}
		if result.Status != want || want == report.Inconclusive && result.Reason != "given operators that have written no Lease, status or operand: ingress" {
			t.Errorf("%s is %s, want %s: %s %+v", result.ID, result.Status, want, result.Reason, result.Evidence)
		}
	}
	for _, id := range []string{"SNO-ING-001", "SNO-ING-004", "SNO-TOP-001", "SNO-CON-001"} {
		if !slices.Contains(ran, id) {
			t.Errorf("%s did not run; these did: %v", id, ran)
		}
	}
}

// An operator that ends at once ends the start of the cluster, with the end of its log.
func TestOperatorThatEnds(t *testing.T) {
	t.Parallel()
	o := options("none-sno", Baseline)
	o.Operators = given(t, `approver=sh -c 'echo "no config.yaml" >&2; exit 3'`)
	s, err := start(t.Context(), o)
	if err == nil {
		s.Stop()
	}
	if !errors.Is(err, framework.ErrOperatorEnded) {
		t.Fatal(err)
	}
	for _, want := range []string{"set up none-sno, baseline: ", "approver, exit status 3 (sh -c ", "log ends with:\nno config.yaml"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

// Programs of hosts that are commands are not built, and etcd has no operator where it is not in the cluster.
func TestProgramsAndOperators(t *testing.T) {
	operators := given(t, "etcd=sleep 1", "ingress=sleep 1")
	for _, variant := range []Variant{SNO, Vendored, Baseline} {
		all, err := variant.Programs(operators)
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range all {
			if program == programs.EtcdHost || program == programs.IngressHost {
				t.Errorf("%s builds %s", variant, program.Name)
			}
		}
		for _, s := range scenario.All() {
			hosts, err := variant.Operators(s.Name, operators)
			if err != nil {
				t.Fatal(err)
			}
			etcd := slices.ContainsFunc(hosts, func(o report.Operator) bool { return o.Module == "etcdguard" })
			if etcd != (s.Name != "external") || !slices.ContainsFunc(hosts, func(o report.Operator) bool { return o.Module == "ingress" && !o.StandIn }) {
				t.Errorf("%s, %s: %+v", variant, s.Name, hosts)
			}
		}
	}
	if _, err := Variant("tomorrow").Operators("none-sno", operators); !errors.Is(err, ErrVariant) {
		t.Errorf("an unknown variant: %v", err)
	}
	if _, err := SNO.Operators("nowhere", operators); !errors.Is(err, scenario.ErrUnknown) {
		t.Errorf("an unknown scenario: %v", err)
	}
}
