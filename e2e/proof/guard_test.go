// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/fakes/etcdmembers"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

const guardName = "etcd-quorum-guard"

// TestQuorumGuard runs the etcdguard controller with the cluster-version-operator of an old release and as many real
// members of etcd as the cluster has nodes for them. Exactly as many guards can be evicted at once as quorum tolerates,
// and every node can be drained.
func TestQuorumGuard(t *testing.T) {
	t.Parallel()
	type test struct {
		scenario string
		// more is the number of additional control-plane nodes.
		more int
		// guards is their number, and evictable how many can be evicted: floor((n-1)/2), one of two where the nodes fence
		// each other.
		guards, evictable int
		reason            string
	}
	tests := []test{
		{"none-sno", 0, 0, 0, "AsExpected"},
		{"two-node", 0, 2, 1, "AsExpected"},
		{"arbiter", 0, 3, 1, "AsExpected"},
		{"ha", 0, 3, 1, "NotNeeded"},
		{"ha", 2, 5, 2, "AsExpected"},
	}
	if testing.Short() {
		tests = tests[1:2]
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s and %d nodes", test.scenario, test.more), func(t *testing.T) {
			t.Parallel()
			p := start(t, framework.Config{Scenario: test.scenario, Release: scenario.OldRelease, QuorumGuard: true})
			for i := range test.more {
				master := p.Scenario.Nodes()[0]
				master.Name = fmt.Sprintf("more-%d", i)
				p.must(p.Cluster.AddNode(p.ctx, master))
			}
			p.asInstalled()
			if test.guards == 0 {
				p.cannotBeDrained("master-0")
			}
			p.guarded(max(test.guards, 1))
			p.expect(map[framework.Module]string{framework.EtcdGuard: test.reason})
			if test.guards == 0 {
				p.noGuard()
			} else {
				p.guardsReady(test.guards)
				p.evictAll(test.guards, test.evictable)
				p.guardsReady(test.guards)
			}
			for _, node := range p.nodes() {
				p.must(operand.Drain(p.ctx, p.Cluster, node))
				p.must(operand.Uncordon(p.ctx, p.Cluster, node))
				if test.guards > 0 {
					p.guardsReady(test.guards)
				}
			}
			p.expect(map[framework.Module]string{framework.EtcdGuard: test.reason})
			p.quiet()
		})
	}
}

// TestQuorumGuardFollows grows a single node to three and back: the guard follows, and is removed when etcd has one
// member again.
func TestQuorumGuardFollows(t *testing.T) {
	t.Parallel()
	p := start(t, framework.Config{Scenario: "none-sno", Release: scenario.OldRelease, QuorumGuard: true})
	p.asInstalled()
	p.guarded(1)
	p.expect(map[framework.Module]string{framework.EtcdGuard: "AsExpected"})
	p.noGuard()
	p.addMasters()
	p.quiet()
	p.noGuard()

	p.must(p.SetTopology(p.ctx, configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableTopologyMode))
	p.expect(map[framework.Module]string{framework.EtcdGuard: "NotNeeded"})
	p.guardsReady(3)
	p.evictAll(3, 1)
	if overrides := p.version().Spec.Overrides; len(overrides) > 0 {
		p.t.Errorf("unneeded entries block upgrades: %v", overrides)
	}
	p.quiet()

	p.must(p.SetTopology(p.ctx, configv1.SingleReplicaTopologyMode, configv1.SingleReplicaTopologyMode))
	p.expect(map[framework.Module]string{framework.EtcdGuard: "AsExpected"})
	p.noGuard()
	p.quiet()
}

func (p *proof) asInstalled() {
	p.t.Helper()
	p.must(wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		budget := &policyv1.PodDisruptionBudget{}
		err := p.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: guardName}, budget)
		return err == nil && budget.Status.ObservedGeneration == budget.Generation && budget.Status.CurrentHealthy > 0, client.IgnoreNotFound(err)
	}))
}

func (p *proof) guarded(n int) {
	p.t.Helper()
	etcd, err := etcdmembers.Start(p.ctx, p.Cluster, n)
	p.must(err)
	controller, err := p.RunController(p.ctx, framework.EtcdGuard, "--etcd-endpoints="+strings.Join(etcd.Endpoints, ","))
	p.must(err)
	p.running[framework.EtcdGuard] = controller
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("the log of the controller ends with:\n%s", controller.LogTail(logTail))
		}
	})
}

// cannotBeDrained checks that the release's guard blocks the only node.
func (p *proof) cannotBeDrained(node string) {
	p.t.Helper()
	for _, pod := range p.guards() {
		if err := p.evict(pod); !apierrors.IsTooManyRequests(err) {
			p.t.Errorf("%s: the eviction of %s, which blocks the drain of %s: %v, want a refusal", p.Scenario.Name, pod.Name, node, err)
		}
	}
}

func (p *proof) noGuard() {
	p.t.Helper()
	key := client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: guardName}
	p.must(wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		if len(p.guards()) > 0 {
			return false, nil
		}
		for _, object := range []client.Object{&appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}} {
			if err := p.Cluster.Client().Get(ctx, key, object); !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return true, nil
	}))
}

func (p *proof) guards() []corev1.Pod {
	p.t.Helper()
	list, err := p.Cluster.Clientset().CoreV1().Pods(scenario.EtcdNamespace).List(p.ctx, metav1.ListOptions{LabelSelector: "k8s-app=" + guardName})
	p.must(err)
	var on []corev1.Pod
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			on = append(on, pod)
		}
	}
	return on
}

// guardsReady waits for a ready guard on each of n nodes, as counted by the budget.
func (p *proof) guardsReady(n int) {
	p.t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		budget := &policyv1.PodDisruptionBudget{}
		if err := p.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: guardName}, budget); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		nodes := map[string]bool{}
		for _, pod := range p.guards() {
			nodes[pod.Spec.NodeName] = true
		}
		last = fmt.Sprintf("guards on %v, budget %+v", nodes, budget.Status)
		s := budget.Status
		return len(nodes) == n && s.ObservedGeneration == budget.Generation && int(s.CurrentHealthy) == n && int(s.ExpectedPods) == n && len(s.DisruptedPods) == 0, nil
	})
	if err != nil {
		p.t.Fatalf("%s: no %d guards: %v; %s", p.Scenario.Name, n, err, last)
	}
}

// evictAll cordons every node, so that no guard returns, and evicts guards until no more can be evicted.
func (p *proof) evictAll(guards, evictable int) {
	p.t.Helper()
	for _, node := range p.nodes() {
		p.cordon(node, true)
	}
	evicted := 0
	p.must(wait.PollUntilContextTimeout(p.ctx, poll, operand.WaitTimeout, true, func(ctx context.Context) (bool, error) {
		refused := 0
		left := p.guards()
		for _, pod := range left {
			switch err := p.evict(pod); {
			case apierrors.IsTooManyRequests(err):
				refused++
			case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
				return false, err
			}
		}
		budget := &policyv1.PodDisruptionBudget{}
		if err := p.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: scenario.EtcdNamespace, Name: guardName}, budget); err != nil {
			return false, err
		}
		evicted = guards - len(left)
		// It ends when all remaining guards were refused and the budget has counted the evicted ones.
		return refused == len(left) && int(budget.Status.CurrentHealthy) == len(left) && len(budget.Status.DisruptedPods) == 0, nil
	}))
	if evicted != evictable {
		p.t.Errorf("%s: %d of %d guards were evicted, want %d", p.Scenario.Name, evicted, guards, evictable)
	}
	for _, node := range p.nodes() {
		p.cordon(node, false)
	}
}

func (p *proof) cordon(node string, unschedulable bool) {
	p.t.Helper()
	body := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
	_, err := p.Cluster.Clientset().CoreV1().Nodes().Patch(p.ctx, node, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	p.must(err)
}

func (p *proof) evict(pod corev1.Pod) error {
	return p.Cluster.Clientset().PolicyV1().Evictions(pod.Namespace).Evict(p.ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
}
