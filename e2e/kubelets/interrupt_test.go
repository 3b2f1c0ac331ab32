// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

// phaseLimit bounds the wait for a phase and for the end after it.
const phaseLimit = 6 * time.Minute

// The suite of this process runs once more, by Ginkgo's program, with another filter.
var _ = Describe("Ctrl-C leaves no container, volume, network, image, kubeconfig, file or process behind", Label("interrupt", optIn), Serial, func() {
	DescribeTable("in each phase:",
		func(ctx SpecContext, filter, line string) {
			interrupt(ctx, 1, filter, func(session *gexec.Session) {
				Eventually(ctx, session).WithTimeout(phaseLimit).Should(gbytes.Say(line))
			})
		},
		Entry("programs and images are built", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Starting a cluster of real kubelets"),
		Entry("nodes are made", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Preparing nodes"),
		Entry("the control plane starts", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Starting control-plane"),
		Entry("objects and stand-ins are installed", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "is up: export KUBECONFIG"),
		Entry("controllers settle", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Waiting until the controllers have settled"),
		Entry("workers join", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "The later workers join"),
		Entry("the conformance suite runs", NodeTimeout(3*phaseLimit), "--label-filter=smoke", "Running the conformance suite"),
		Entry("a router with traffic is rolled out", NodeTimeout(3*phaseLimit), "--focus=ends.its.rollouts", "Rolling the router out"),
		Entry("a load balancer is made", NodeTimeout(3*phaseLimit), "--focus=allows.no.eviction.of.another.guard", "Making a load balancer"),
	)

	It("with two clusters", NodeTimeout(4*phaseLimit), func(ctx SpecContext) {
		e := suite.Must(engine.Find(ctx))
		interrupt(ctx, 2, "--focus=survive.it|Nodes.that.request.a.drain", func(*gexec.Session) {
			Eventually(ctx, e.Output).WithArguments("ps", "--format", "{{.Names}}").WithTimeout(2 * phaseLimit).Should(
				And(ContainSubstring("interrupted-control-plane"), ContainSubstring("interrupted-2-control-plane")))
		})
	})
})

func interrupt(ctx context.Context, processes int, filter string, reached func(*gexec.Session)) {
	GinkgoHelper()
	_, _, err := nodeimage.Ensure(ctx, suite.Must(engine.Find(ctx)), GinkgoWriter) // it stays
	Expect(err).NotTo(HaveOccurred())
	out := GinkgoT().TempDir()
	suite.Interrupt(ctx, exec.Command("go", "run", "github.com/onsi/ginkgo/v2/ginkgo", "-v", "--grace-period=2m", "--procs="+strconv.Itoa(processes), filter,
		"--output-dir="+out, suite.Must(os.Executable()), "--", "-test.run=^TestKubelets$", "-name=interrupted", "-tiers=static", "-out="+out), reached)
}
