// SPDX-License-Identifier: Apache-2.0

package vendored

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
	patchworkload "github.com/solonode/sno/topology/workload"
)

const asExpected, notNeeded = "AsExpected", "NotNeeded"

var (
	hosts = map[framework.Module][]string{framework.Console: nil, framework.Auth: nil}
	// stock are the same operators without the modules.
	stock = map[framework.Module][]string{framework.Console: {"--stock"}, framework.Auth: {"--stock"}}
	// besideHosts are the reasons of the controllers next to them. The auth controller owns the shape together with its
	// host.
	besideHosts = map[framework.Module]string{framework.Console: notNeeded, framework.Auth: asExpected}
	// Two of the auth module's three objects need nothing because the control plane is external, the third in any case.
	besideExternal = map[framework.Module]string{framework.Console: notNeeded, framework.Auth: notNeeded + "|ExternalControlPlane"}
)

var _ = DescribeTable("Operators that vendor console and auth suffice, and controllers next to them overwrite nothing",
	func(ctx SpecContext, name string, reasons map[framework.Module]string) {
		c := steps.Start(ctx, framework.Config{Scenario: name, Hosts: hosts})
		c.Settled(c.Scenario.Operands.List())
		c.RunAll(reasons)
		c.Disturb(c.Scenario.Operands.List())
		c.Quiet()
	},
	func(name string, _ map[framework.Module]string) string { return "on " + name },
	Entry(nil, Label(suite.Long), "arbiter", besideHosts),
	Entry(nil, Label(suite.Long), "cloud-sno-day1-workers", besideHosts),
	Entry(nil, Label(suite.Long), "ha", besideHosts),
	Entry(nil, Label(suite.Long), "compact", besideHosts),
	Entry(nil, Label(suite.Long), "two-node", besideHosts),
	Entry(nil, Label(suite.Long), "external", besideExternal),
)

var _ = It("Operators that vendor console and auth replace stock ones on a single node, and follow its growth and the way back", Label(suite.Smoke), func(ctx SpecContext) {
	c := steps.Start(ctx, framework.Config{Scenario: "none-sno-day2-workers", Hosts: stock})
	one, three := c.Scenario.Operands.List(), scenario.Operands{Pool: scenario.PoolMaster, Console: 2, OAuth: 3}.List()
	c.Settled(one)
	for module, args := range hosts {
		Expect(c.RunHost(ctx, module, args...)).To(Succeed())
	}
	replaced(c, one)
	c.RunAll(besideHosts)
	c.Disturb(one)
	Expect(c.Scenario.AddDay2Workers(ctx, c.Cluster)).To(Succeed())
	c.Disturb(one)
	c.AddMasters("master-1", "master-2")
	// The topology of the workers changes nothing.
	Expect(c.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
	c.Quiet()
	c.Settled(one)

	Expect(c.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
	c.Settled(three)
	c.Quiet()
	c.Disturb(three)

	Expect(c.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
	c.Settled(one)
	c.Quiet()
	c.Settled(one)
})

// replaced waits until the operators that vendor the modules have replaced the stock ones: on one node the new pod starts
// first, where the stock oauth-openshift stops the old one, and there are no budgets, which the stock console has.
func replaced(c *steps.Cluster, want []scenario.Operand) {
	GinkgoHelper()
	for _, o := range want {
		if o.OneWriter {
			continue
		}
		Eventually(c.Ctx, func(g Gomega) {
			live, err := operand.Deployment(c.Ctx, c.Kube, o)
			g.Expect(err).NotTo(HaveOccurred())
			unavailable, surge, ok := patchworkload.Steps(live.Spec.Strategy, 1)
			g.Expect(ok && unavailable == 0 && surge == 1).To(BeTrue(), "the new pod of %s starts first: %+v", o, live.Spec.Strategy)
			budgets := &policyv1.PodDisruptionBudgetList{}
			g.Expect(c.Kube.List(c.Ctx, budgets, client.InNamespace(o.Namespace))).To(Succeed())
			g.Expect(budgets.Items).To(BeEmpty())
		}).Should(Succeed())
	}
	c.Settled(want)
}
