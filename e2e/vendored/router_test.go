// SPDX-License-Identifier: Apache-2.0

package vendored

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/scenario"
	patchworkload "github.com/solonode/sno/topology/workload"
)

// withRouter is a cluster with the ingress operator that vendors the module, on one node.
type withRouter struct{ *steps.Cluster }

func (c withRouter) router() (*appsv1.Deployment, error) {
	live := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: scenario.RouterNamespace, Name: "router-" + scenario.DefaultIngressController}
	return live, c.Kube.Get(c.Ctx, key, live)
}

func (c withRouter) roll(why string) {
	GinkgoHelper()
	live := suite.Must(c.router())
	body := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"rolled":%q}}}}}`, why)
	Expect(c.Kube.Patch(c.Ctx, live, client.RawPatch(types.MergePatchType, body))).To(Succeed())
}

// rolledOut waits until there is one router, of the newest revision and available, and returns the largest number that
// was on the node until then.
func (c withRouter) rolledOut() (most int) {
	GinkgoHelper()
	Eventually(c.Ctx, func(g Gomega) {
		pods := &corev1.PodList{}
		g.Expect(c.Kube.List(c.Ctx, pods, client.InNamespace(scenario.RouterNamespace))).To(Succeed())
		placed := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				placed++
			}
		}
		most = max(most, placed)
		live, err := c.router()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(live.Status.ObservedGeneration).To(BeNumerically(">=", live.Generation))
		g.Expect(live.Status).To(And(HaveField("UpdatedReplicas", BeEquivalentTo(1)), HaveField("AvailableReplicas", BeEquivalentTo(1))))
		g.Expect(pods.Items).To(HaveLen(1))
	}).Should(Succeed())
	return most
}

// R-SNO-2. If the pods share their ports, the scheduler places the new one next to the old one, otherwise when the old
// one has ended.
var _ = It("A router with host ports is rolled out next to the old one only if it shares its ports", Label(suite.Smoke), func(ctx SpecContext) {
	c := withRouter{steps.Start(ctx, framework.Config{Scenario: "none-sno", Hosts: map[framework.Module][]string{framework.Ingress: nil}})}
	c.rolledOut()
	for _, test := range []struct {
		args []string
		want int
	}{{nil, 1}, {[]string{"--shared-host-ports"}, 2}} {
		Expect(c.RunHost(ctx, framework.Ingress, test.args...)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			live, err := c.router()
			g.Expect(err).NotTo(HaveOccurred())
			_, surge, ok := patchworkload.Steps(live.Spec.Strategy, 1)
			g.Expect(ok).To(BeTrue())
			g.Expect(surge).To(Equal(test.want - 1))
		}).Should(Succeed())
		c.rolledOut()
		c.roll(fmt.Sprint(test.args))
		Expect(c.rolledOut()).To(Equal(test.want), "routers on the node with %v", test.args)
	}
})
