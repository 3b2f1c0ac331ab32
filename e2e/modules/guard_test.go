// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/steps"
	"github.com/solonode/sno/e2e/framework/suite"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/scenario"
)

var guardKey = client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: "etcd-quorum-guard"}

// guarded is a cluster of an old release, whose cluster-version-operator installs the guard, with real members of etcd.
type guarded struct{ *steps.Cluster }

func startGuarded(ctx context.Context, name string) guarded {
	GinkgoHelper()
	return guarded{steps.Start(ctx, framework.Config{Scenario: name, Release: scenario.OldRelease, QuorumGuard: true})}
}

// As many members of etcd as the cluster has nodes for them.
var _ = DescribeTable("Exactly as many quorum guards can be evicted at once as quorum tolerates, and every node can be drained",
	func(ctx SpecContext, name string, more, guards, evictable int, reason string) {
		g := startGuarded(ctx, name)
		for i := range more {
			g.AddMasters(fmt.Sprintf("more-%d", i))
		}
		g.installed()
		if guards == 0 {
			for _, pod := range g.pods() { // the release's guard blocks the only node
				Expect(apierrors.IsTooManyRequests(g.evict(pod))).To(BeTrue(), "the eviction of %s is refused", pod.Name)
			}
		}
		g.runController(max(guards, 1))
		g.expect(reason)
		if guards == 0 {
			g.gone()
		} else {
			g.ready(guards)
			Expect(g.evictAll(guards)).To(Equal(evictable))
			g.ready(guards)
		}
		for _, node := range g.Nodes() {
			g.Drain(node)
			if guards > 0 {
				g.ready(guards)
			}
		}
		g.expect(reason)
		g.Quiet()
	},
	// The evictable ones are floor((n-1)/2), one of two where the nodes fence each other.
	Entry("on one node", Label(suite.Long), "none-sno", 0, 0, 0, asExpected),
	Entry("on two nodes", Label(suite.Long), "two-node", 0, 2, 1, asExpected),
	Entry("on two nodes and an arbiter", Label(suite.Long), "arbiter", 0, 3, 1, asExpected),
	Entry("on three nodes", Label(suite.Long), "ha", 0, 3, 1, notNeeded),
	Entry("on five nodes", Label(suite.Long), "ha", 2, 5, 2, asExpected),
)

var _ = It("The quorum guard follows a single node that grows to three and back", Label(suite.Smoke), func(ctx SpecContext) {
	g := startGuarded(ctx, "none-sno")
	g.installed()
	g.runController(1)
	g.expect(asExpected)
	g.gone()
	g.AddMasters("master-1", "master-2")
	g.Quiet()
	g.gone()

	Expect(g.SetTopology(ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode)).To(Succeed())
	g.expect(notNeeded)
	g.ready(3)
	Expect(g.evictAll(3)).To(Equal(1))
	Expect(version(g.Cluster).Spec.Overrides).To(BeEmpty(), "unneeded entries block upgrades")
	g.Quiet()

	Expect(g.SetTopology(ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode)).To(Succeed())
	g.expect(asExpected)
	g.gone()
	g.Quiet()
})

func (g guarded) expect(reason string) {
	GinkgoHelper()
	g.Expect(map[framework.Module]string{framework.EtcdGuard: reason})
}

// installed waits until the release has installed its guard.
func (g guarded) installed() {
	GinkgoHelper()
	Eventually(g.Ctx, g.budget).Should(And(Not(BeNil()), HaveField("Status.CurrentHealthy", BeNumerically(">", 0))))
}

// budget returns the guards' budget when its status is current.
func (g guarded) budget() (*policyv1.PodDisruptionBudget, error) {
	budget := &policyv1.PodDisruptionBudget{}
	if err := g.Kube.Get(g.Ctx, guardKey, budget); err != nil {
		return nil, err
	}
	if budget.Status.ObservedGeneration != budget.Generation {
		return nil, fmt.Errorf("the budget of generation %d is at %d", budget.Generation, budget.Status.ObservedGeneration) //nolint:err113 // of a spec
	}
	return budget, nil
}

func (g guarded) runController(members int) {
	GinkgoHelper()
	etcd := suite.Must(etcdmembers.Start(g.Ctx, g.Cluster.Cluster, members))
	g.Run(framework.EtcdGuard, "--etcd-endpoints="+strings.Join(etcd.Endpoints, ","))
}

// gone waits until there is no guard.
func (g guarded) gone() {
	GinkgoHelper()
	Eventually(g.Ctx, func(o Gomega) {
		o.Expect(g.pods()).To(BeEmpty())
		for _, object := range []client.Object{&appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}} {
			o.Expect(apierrors.IsNotFound(g.Kube.Get(g.Ctx, guardKey, object))).To(BeTrue(), "%T", object)
		}
	}).Should(Succeed())
}

// pods returns the guards that have a node and are not being deleted.
func (g guarded) pods() (on []corev1.Pod) {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(g.Kube.List(g.Ctx, list, client.InNamespace(guardKey.Namespace), client.MatchingLabels{"k8s-app": guardKey.Name})).To(Succeed())
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			on = append(on, pod)
		}
	}
	return on
}

// ready waits for a ready guard on each of n nodes, as counted by the budget.
func (g guarded) ready(n int) {
	GinkgoHelper()
	Eventually(g.Ctx, func(o Gomega) {
		nodes := map[string]bool{}
		for _, pod := range g.pods() {
			nodes[pod.Spec.NodeName] = true
		}
		o.Expect(nodes).To(HaveLen(n))
		budget, err := g.budget()
		o.Expect(err).NotTo(HaveOccurred())
		o.Expect(budget.Status).To(And(HaveField("CurrentHealthy", BeEquivalentTo(n)), HaveField("ExpectedPods", BeEquivalentTo(n)), HaveField("DisruptedPods", BeEmpty())))
	}).Should(Succeed())
}

// evictAll cordons every node, so that no guard returns, evicts guards until no more can be evicted, and returns how
// many were.
func (g guarded) evictAll(guards int) (evicted int) {
	GinkgoHelper()
	for _, node := range g.Nodes() {
		g.cordon(node, true)
	}
	Eventually(g.Ctx, func(o Gomega) {
		left := g.pods()
		for _, pod := range left {
			// It ends when all remaining guards are refused and the budget has counted the evicted ones.
			o.Expect(apierrors.IsTooManyRequests(g.evict(pod))).To(BeTrue(), "the eviction of %s is refused", pod.Name)
		}
		budget, err := g.budget()
		o.Expect(err).NotTo(HaveOccurred())
		o.Expect(budget.Status).To(And(HaveField("CurrentHealthy", BeEquivalentTo(len(left))), HaveField("DisruptedPods", BeEmpty())))
		evicted = guards - len(left)
	}).Should(Succeed())
	for _, node := range g.Nodes() {
		g.cordon(node, false)
	}
	return evicted
}

func (g guarded) cordon(node string, unschedulable bool) {
	GinkgoHelper()
	body := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
	Expect(g.Kube.Patch(g.Ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, body))).To(Succeed())
}

func (g guarded) evict(pod corev1.Pod) error {
	return g.Cluster.Cluster.Clientset().PolicyV1().Evictions(pod.Namespace).Evict(g.Ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
}
