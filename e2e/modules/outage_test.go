// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/embedded"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// outage is the duration of an API server rollout on a single node.
	outage = 60 * time.Second
	// recovery limits the time until the nodes, the router and then the controller have recovered.
	recovery = 5 * time.Minute
)

// Both classes of leader election are tested, since their durations differ.
var _ = DescribeTable("A controller outlives an outage of the API server during a reconciliation, keeps its Lease and completes the change", Label(suite.Long),
	func(ctx SpecContext, name, before, after string, changed configv1.TopologyMode) {
		c := steps.Start(ctx, framework.Config{Scenario: name, Hosts: map[framework.Module][]string{framework.Ingress: nil}})
		controller := c.Run(framework.Ingress)
		c.Expect(map[framework.Module]string{framework.Ingress: before})
		pid, held := controller.PID(), lease(c)

		// The change and the kill race on purpose.
		infrastructure := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: scenario.ClusterName}}
		body := fmt.Appendf(nil, `{"status":{"infrastructureTopology":%q}}`, changed)
		Expect(c.Kube.Status().Patch(ctx, infrastructure, client.RawPatch(types.MergePatchType, body))).To(Succeed())
		Expect(c.Cluster.KillAPIServer()).To(Succeed())
		Consistently(ctx, controller.Exited()).WithTimeout(outage).ShouldNot(BeClosed())
		Expect(c.Cluster.StartAPIServer(ctx)).To(Succeed())

		// Only the final state counts: right after the outage the router and its node are unavailable until the node's Lease
		// is renewed.
		_, err := c.WaitReason(ctx, framework.Ingress, recovery, after)
		Expect(err).NotTo(HaveOccurred())
		live, err := c.Object(ctx, framework.Ingress)
		Expect(err).NotTo(HaveOccurred())
		spec, _ := live.Object["spec"].(map[string]any)
		_, pinned := spec["nodePlacement"]
		Expect(pinned).To(Equal(after == asExpected), "spec is %v", spec)
		Expect(controller.PID()).To(Equal(pid), "the process survived")
		now := lease(c)
		Expect(now.HolderIdentity).To(HaveValue(Equal(*held.HolderIdentity)))
		Expect(now.LeaseTransitions).To(HaveValue(Equal(*held.LeaseTransitions)))
	},
	Entry("on a single node", "none-sno", asExpected, notNeeded, configv1.HighlyAvailableTopologyMode),
	Entry("on three nodes", "compact", notNeeded, asExpected, configv1.SingleReplicaTopologyMode),
)

func lease(c *steps.Cluster) coordinationv1.LeaseSpec {
	GinkgoHelper()
	leases := &coordinationv1.LeaseList{}
	Expect(c.Kube.List(c.Ctx, leases, client.InNamespace(framework.SystemNamespace))).To(Succeed())
	Expect(leases.Items).To(HaveExactElements(HaveField("Spec.HolderIdentity", HaveValue(Not(BeEmpty())))))
	return leases.Items[0].Spec
}

var _ = It("A controller whose placement the stock operator reverts stops after one write, and reports it", Label(suite.Long), func(ctx SpecContext) {
	c := steps.Start(ctx, framework.Config{Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.Ingress: {"--stock", "--revert-placement"}}})
	started := time.Now()
	controller := c.Run(framework.Ingress)
	c.Expect(map[framework.Module]string{framework.Ingress: "Reverted"})
	Consistently(ctx, controller.Exited()).WithTimeout(time.Minute - time.Since(started)).ShouldNot(BeClosed())
	events, _, err := c.Cluster.AuditEvents(ctx, 0, embedded.AuditFilter{User: framework.Ingress.User(), Resource: "ingresscontrollers", WritesOnly: true})
	Expect(err).NotTo(HaveOccurred())
	var writes []string
	for _, event := range events {
		if !strings.Contains(event.RequestURI, "/status") {
			writes = append(writes, event.Verb+" "+event.RequestURI)
		}
	}
	Expect(writes).To(HaveLen(1), "writes to the IngressController in the first minute")
	condition, err := c.Condition(ctx, framework.Ingress)
	Expect(err).NotTo(HaveOccurred())
	Expect(condition.Reason).To(Equal("Reverted"))
})
