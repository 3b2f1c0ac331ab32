// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/conformance/traffic"
	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
)

const (
	// deletions and rolloutsEach are how often a router is deleted and rolled out in each way.
	deletions, rolloutsEach = 10, 5
	// lost is how long a Ready router may take to answer at the control plane's address. Its rules and routes exist before
	// it is Ready.
	lost = 3 * time.Second
	// comeback is for a router to end before the next one begins, on its node's network, and for the scheduler and the
	// kubelet to react.
	comeback = 30 * time.Second
	// unnoticed is for kube-proxy to receive the new pod, possibly after the old one has ended.
	unnoticed = 4 * traffic.Interval
	// returnBound is for a node with its API server and everything that starts in sequence, on a busy machine.
	returnBound = 5 * time.Minute
)

var _ = Describe("The default router", func() {
	It("loses its traffic without the module when it is deleted after workers were added, and keeps it with the module (R-ING-3, R-SUITE-6)",
		NodeTimeout(30*time.Minute), func(ctx SpecContext) {
			s := openSite(ctx, cluster(ctx, day2Workers), "--stock")
			users := s.visit(ctx, "http", 80)

			DeferCleanup(s.optOut, false)
			s.optOut(ctx, true)
			gone := 0
			for range deletions {
				pod := s.deleteRouter(ctx)
				err := users.WaitAnswered(ctx, answeredFor, answeredFor+lost)
				if errors.Is(err, traffic.ErrLost) && pod.Spec.NodeName != s.node {
					gone++
					continue
				}
				Expect(err).NotTo(HaveOccurred(), "the router is on %s", pod.Spec.NodeName)
			}
			Expect(gone).To(BeNumerically(">", 0), "the router never left the control plane without the module, so this proves nothing")

			s.optOut(ctx, false)
			s.router(ctx, "on the control plane", s.onControlPlane)
			answered(ctx, users)
			var outages []time.Duration
			for range deletions {
				begun := time.Now()
				Expect(s.deleteRouter(ctx).Spec.NodeName).To(Equal(s.node), "the node of the router with the module")
				outages = append(outages, outageSince(ctx, users, begun))
			}
			row := outageRow("Router deleted with workers there, with the module", outages, comeback)
			row.Compared = fmt.Sprintf("without it: after %d of %d deletions traffic stays lost until the router is moved", gone, deletions)
			record(row)
		})

	It("stays where it is, and traffic returns, when the controller and the router roll out with another image (R-OPS-1)", NodeTimeout(20*time.Minute), func(ctx SpecContext) {
		e := cluster(ctx)
		visited(ctx, e, "New controller image, then new router image", comeback, func(s *site, users *traffic.Generator) {
			begun, newer := time.Now(), e.Image(framework.Ingress)+"-next"
			Expect(e.Kind.Tag(ctx, e.Image(framework.Ingress), newer)).To(Succeed())
			e.apply(ctx, framework.Ingress, newer)
			e.rolled(ctx, framework.Ingress.Account())
			Expect(traffic.Outages(users.Since(begun))).To(BeEmpty(), "outages by a new controller")
			s.run(ctx, secondRouter)
			s.router(ctx, "of the new image on the control plane", func(p *corev1.Pod) bool {
				return s.onControlPlane(p) && p.Spec.Containers[0].Image == secondRouter
			})
		})
	})

	host := hostNetwork()
	private := &operatorv1.EndpointPublishingStrategy{
		Type: operatorv1.PrivateStrategyType, Private: &operatorv1.PrivateStrategy{Protocol: operatorv1.TCPProtocol},
	}
	DescribeTable("ends its rollouts on a single node, with outages within the bound:", Serial,
		func(ctx SpecContext, publishing *operatorv1.EndpointPublishingStrategy, port int, bound time.Duration, hostArgs ...string) {
			s := openSite(ctx, cluster(ctx, day2Workers))
			name := CurrentSpecReport().LeafNodeText
			DeferCleanup(s.publish, hostNetwork())
			s.publish(ctx, publishing)
			s.run(ctx, firstRouter, hostArgs...)
			onHost := publishing.Type == operatorv1.HostNetworkStrategyType
			s.router(ctx, "that is published so", func(p *corev1.Pod) bool { return p.Spec.HostNetwork == onHost && s.onControlPlane(p) })
			s.rolledOut(ctx)
			users := s.visit(ctx, "http", port)
			var outages []time.Duration
			for i := range rolloutsEach {
				By("Rolling the router out")
				begun := time.Now()
				s.roll(ctx, fmt.Sprintf("%s %d", name, i))
				outages = append(outages, outageSince(ctx, users, begun))
			}
			record(outageRow("Router rollout on one node: "+name, outages, bound))
		},
		Entry("host ports, stock strategy (25 %, no surge)", NodeTimeout(20*time.Minute), host, 80, comeback, "--stock"),
		Entry("host ports, shaped by the module", NodeTimeout(20*time.Minute), host, 80, comeback),
		Entry("no host ports, stock strategy (25 %, surge 25 %)", NodeTimeout(20*time.Minute), private, nodePort, comeback, "--stock"),
		Entry("no host ports, shaped by the module", NodeTimeout(20*time.Minute), private, nodePort, unnoticed),
	)
})

var _ = It("The default router gets its traffic back by itself when the control-plane node restarts", later, Serial, NodeTimeout(20*time.Minute), func(ctx SpecContext) {
	e := cluster(ctx)
	visited(ctx, e, "Restart of the control-plane node", returnBound, func(s *site, _ *traffic.Generator) {
		Expect(e.Kind.Restart(ctx, s.node)).To(Succeed())
		s.router(ctx, "after the restart", s.onControlPlane)
	})
})

// visited measures the outage of both entrances while something happens.
func visited(ctx context.Context, e *Env, what string, bound time.Duration, happens func(*site, *traffic.Generator)) {
	GinkgoHelper()
	s := openSite(ctx, e)
	plain, secured := s.visit(ctx, "http", 80), s.visit(ctx, "https", 443)
	begun := time.Now()
	happens(s, plain)
	record(outageRow(what+", http", []time.Duration{outageSince(ctx, plain, begun)}, bound),
		outageRow(what+", https", []time.Duration{outageSince(ctx, secured, begun)}, bound))
}

func (s *site) onControlPlane(pod *corev1.Pod) bool { return pod.Spec.NodeName == s.node }

// deleteRouter deletes the router, and returns the one that replaces it.
func (s *site) deleteRouter(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	old := s.router(ctx, "to delete", func(*corev1.Pod) bool { return true })
	Expect(s.Cluster.Client().Delete(ctx, old)).To(Succeed())
	next := s.router(ctx, "that replaces the deleted one", func(p *corev1.Pod) bool { return p.UID != old.UID })
	return next
}

// optOut sets or removes the opt-out of the default IngressController, and waits until the module has reacted.
func (s *site) optOut(ctx context.Context, out bool) {
	GinkgoHelper()
	value, reasons := "null", []string{"AsExpected", "RouterRollingOut"}
	if out {
		value, reasons = `"ingress"`, []string{"OptedOut"}
	}
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":%s}}}`, value)
	Expect(s.Cluster.Client().Patch(ctx, defaultController(), client.RawPatch(types.MergePatchType, body))).To(Succeed())
	suite.Must(s.WaitReason(ctx, framework.Ingress, waitTimeout, reasons...))
}

// hostNetwork returns how the default router is published without a load balancer.
func hostNetwork() *operatorv1.EndpointPublishingStrategy {
	return &operatorv1.EndpointPublishingStrategy{
		Type: operatorv1.HostNetworkStrategyType,
		HostNetwork: &operatorv1.HostNetworkStrategy{
			Protocol: operatorv1.TCPProtocol, HTTPPort: 80, HTTPSPort: 443, StatsPort: 1936,
		},
	}
}

// publish changes how the default router is published. The operator reads the status, which never changes on a real
// cluster: this simulates a new default IngressController.
func (s *site) publish(ctx context.Context, strategy *operatorv1.EndpointPublishingStrategy) {
	GinkgoHelper()
	ic := defaultController()
	Expect(s.Cluster.Client().Get(ctx, client.ObjectKeyFromObject(ic), ic)).To(Succeed())
	changed := ic.DeepCopy()
	changed.Status.EndpointPublishingStrategy = strategy
	Expect(s.Cluster.Client().Status().Patch(ctx, changed, client.MergeFrom(ic))).To(Succeed())
}

// outageRow summarises outages, which bound limits.
func outageRow(what string, outages []time.Duration, bound time.Duration) suite.Row {
	sorted := slices.Sorted(slices.Values(outages))
	rank := func(percent int) string { return suite.Seconds(sorted[max(0, (percent*len(sorted)+99)/100-1)]) }
	row := within(what, sorted[len(sorted)-1], bound)
	row.Measured = "outage " + row.Measured
	if len(sorted) > 1 {
		row.Measured = fmt.Sprintf("outage p50 %s, p90 %s, max %s of %d", rank(50), rank(90), rank(100), len(sorted))
	}
	return row
}

func TestOutageRow(t *testing.T) {
	outages := []time.Duration{3 * time.Second, 0, time.Second, 2 * time.Second, 2500 * time.Millisecond}
	want := suite.Row{What: "rollout", Measured: "outage p50 2.00 s, p90 3.00 s, max 3.00 s of 5", Bound: "max 3.00 s", Compared: "-", Held: true}
	if diff := cmp.Diff(want, outageRow("rollout", outages, 3*time.Second)); diff != "" {
		t.Error(diff)
	}
	if row := outageRow("rollout", outages, 2999*time.Millisecond); row.Held {
		t.Errorf("longer than its bound: %+v", row)
	}
}
