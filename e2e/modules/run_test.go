// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"bytes"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/demo"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/scenario"
)

// The main job: the router must return to its place, in the right number, each time its pod is deleted.
// CI runs it itself, on a single node with workers.
var _ = Describe("make run", Label(suite.Long), func() {
	for _, s := range scenario.All() {
		It("holds on "+s.Name, func(ctx SpecContext) {
			var out bytes.Buffer
			Expect(demo.Run(ctx, demo.Options{Scenario: s.Name, Once: true, Out: &out})).To(Succeed(), out.String)
			Expect(out.String()).To(ContainSubstring("The proof held."))
		})
	}

	DescribeTable("with a command as a host operator",
		func(ctx SpecContext, command func(SpecContext) string, is error, want ...string) {
			var out bytes.Buffer
			err := demo.Run(ctx, demo.Options{Scenario: "none-sno-day2-workers", Operators: given(command(ctx)), Once: true, Out: &out})
			if is == nil {
				Expect(err).NotTo(HaveOccurred(), out.String)
			} else {
				Expect(err).To(MatchError(is))
			}
			for _, text := range want {
				Expect(out.String()).To(ContainSubstring(text))
			}
		},
		Entry("in place of a stand-in", func(ctx SpecContext) string {
			return "ingress=" + build(ctx, programs.IngressHost) + " --kubeconfig={kubeconfig} --stock --min-ready-seconds=1"
		}, nil, "Given operator of ingress: "),
		Entry("that it does not have otherwise", func(ctx SpecContext) string {
			return "approver=" + build(ctx, programs.ApproverHost) + " --kubeconfig={kubeconfig} --stock"
		}, nil, "Given operator of approver: ", "  ApproverTopologyPatchInForce="),
		Entry("that does nothing", func(SpecContext) string { return "approver=sleep 100000" }, demo.ErrVerificationFailed,
			"given operators that have written no Lease, status or operand: [approver]"),
		Entry("that ends", func(SpecContext) string { return "ingress=sh -c 'echo broken; exit 4'" }, framework.ErrOperatorEnded,
			"ingress, exit status 4 (sh -c 'echo broken; exit 4'); its log ends with:\nbroken"),
	)
})
