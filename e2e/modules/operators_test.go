// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"io"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
	"github.com/solonode/sno/e2e/embeddedtarget"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/embedded"
)

func given(commands ...string) framework.Operators {
	GinkgoHelper()
	return suite.Must(framework.ReadOperators(commands, nil))
}

func build(ctx SpecContext, program programs.Program) string {
	GinkgoHelper()
	return suite.Must(programs.Build(ctx, program, io.Discard))
}

var _ = Describe("A command instead of a stand-in", Label(suite.Long), func() {
	It("has the verdicts of the same program as a stand-in, also when the topology changes and it restarts", func(ctx SpecContext) {
		o := patient("cloud-sno-day2-workers", embeddedtarget.Baseline)
		selection := runner.Selection{Tiers: catalogue.Tiers(), Modules: []string{"ingress"}}
		before := startSystem(ctx, o)
		standIn := before.run(before.target, selection)
		before.Stop()
		command := build(ctx, programs.IngressHost) + " --kubeconfig={kubeconfig} --canary=true --min-ready-seconds=1 --stock"
		o.Operators = given("ingress=" + command)
		s := startSystem(ctx, o)
		got := s.run(s.target, selection)
		Expect(statuses(byID(got))).To(Equal(statuses(byID(standIn))))
		Expect(got.Counts).To(And(HaveKeyWithValue(report.Failed, BeNumerically(">", 0)), HaveKeyWithValue(report.Passed, BeNumerically(">", 0))))
		want := []report.Operator{
			{Module: "ingress", Command: "ingress-operator --stock", StandIn: true}, {Module: "etcdguard", Command: "etcd-operator --stock", StandIn: true},
			{Module: "machineconfig", Command: "machine-config-operator --stock", StandIn: true}, {Module: "console", Command: "console-operator --stock", StandIn: true},
			{Module: "auth", Command: "authentication-operator --stock", StandIn: true}, {Module: "approver", Command: "machine-approver --stock", StandIn: true},
		}
		Expect(standIn.Operators).To(Equal(want))
		want[0] = report.Operator{Module: "ingress", Command: command}
		Expect(got.Operators).To(Equal(want))
		Expect(embeddedtarget.Baseline.Operators(o.Scenario, o.Operators)).To(Equal(want), "the report of a cluster that is lost names the same")
		for user, expected := range map[string]bool{framework.Ingress.GivenUser(): true, framework.Ingress.HostUser(): false, framework.Console.HostUser(): true} {
			events, _, err := s.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{User: user, WritesOnly: true})
			Expect(err).NotTo(HaveOccurred())
			Expect(len(events) > 0).To(Equal(expected), "user %s has written %d times", user, len(events))
		}
	})

	// One vendors the module, and one does not. The variant has no host for the latter.
	It("runs next to the controllers without a failure", func(ctx SpecContext) {
		o := patient("none-sno-day2-workers", embeddedtarget.SNO)
		o.Operators = given("ingress="+build(ctx, programs.IngressHost)+" --kubeconfig {kubeconfig} --min-ready-seconds 1",
			"etcd="+build(ctx, programs.EtcdHost)+" --kubeconfig {kubeconfig} --stock")
		s := startSystem(ctx, o)
		got := s.run(s.target, undisturbed)
		for _, result := range got.Results {
			Expect(result.Status).NotTo(Or(Equal(report.Failed), Equal(report.Inconclusive)), "%s: %s %+v", result.ID, result.Reason, result.Evidence)
		}
		for _, module := range []framework.Module{framework.Ingress, framework.EtcdGuard} {
			for _, name := range []string{module.Host().Name, module.Controller().Name} {
				Expect(s.Cluster.Program(name).PID()).NotTo(BeZero(), "%s runs", name)
			}
		}
		standIns := map[string]bool{}
		for _, operator := range got.Operators {
			standIns[operator.Module] = operator.StandIn
		}
		Expect(maps.Equal(map[string]bool{"ingress": false, "etcdguard": false, "console": true, "auth": true}, standIns)).To(BeTrue(), "stand-ins: %v", standIns)
	})

	It("that does nothing makes its checks and those of all operands together inconclusive, and only these", func(ctx SpecContext) {
		s := startSystem(ctx, embeddedtarget.Options{
			Scenario: "none-sno", Variant: embeddedtarget.SNO, Operators: given("ingress=sleep 100000"), Times: cluster.SimulatedTimes(),
		})
		selection := undisturbed
		selection.Modules = []string{"ingress", "console", "auth", "topology"}
		var ran []string
		for _, result := range s.run(s.target, selection).Results {
			if result.Status == report.Skipped || result.Status == report.NotApplicable {
				continue
			}
			ran = append(ran, result.ID)
			if result.Module != "ingress" && result.Module != "topology" {
				Expect(result.Status).To(Equal(report.Passed), "%s: %s %+v", result.ID, result.Reason, result.Evidence)
				continue
			}
			Expect(result.Status).To(Equal(report.Inconclusive), "%s: %+v", result.ID, result.Evidence)
			Expect(result.Reason).To(Equal("given operators that have written no Lease, status or operand: ingress"), result.ID)
		}
		Expect(ran).To(ContainElements("SNO-ING-001", "SNO-ING-004", "SNO-TOP-001", "SNO-CON-001"))
	})
})

var _ = It("A command that ends at once ends the start of the cluster, with the end of its log", Label(suite.Smoke), func(ctx SpecContext) {
	o := patient("none-sno", embeddedtarget.Baseline)
	o.Operators, o.Progress = given(`approver=sh -c 'echo "no config.yaml" >&2; exit 3'`), GinkgoWriter
	s, err := embeddedtarget.Start(ctx, o)
	if err == nil {
		s.Stop()
	}
	Expect(err).To(MatchError(framework.ErrOperatorEnded))
	Expect(err).To(MatchError(And(ContainSubstring("set up none-sno, baseline: "), ContainSubstring("approver, exit status 3 (sh -c "), ContainSubstring("log ends with:\nno config.yaml"))))
})
