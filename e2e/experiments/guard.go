// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/e2e/bench"
	"github.com/solonode/sno/e2e/kindtarget"
	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/kind"
)

// EtcdGuard tests the quorum guard with a real etcd of three members, on its own cluster.
var EtcdGuard = kindtarget.Experiment{
	Name: "etcd-guard", OwnCluster: true, SecondCluster: true, Exclusive: true, Run: guard,
	Description: "guards are ready only while their etcd is healthy; while one of three members is dead no other guard can be evicted, afterwards one can; " +
		"on one control-plane node there is no guard and nothing blocks",
}

var errGuard = errors.New("the quorum of etcd is not guarded correctly")

// memberBound is for a kubelet to observe an etcd, by three probes of five seconds, and for an etcd to start, on a busy
// machine.
const memberBound = waitTimeout

// reachable includes an outage of the API server of two minutes by another experiment.
const reachable = 5 * time.Minute

func guard(ctx context.Context, e *kindtarget.Env) error {
	if err := threeMembers(ctx, e); err != nil {
		return err
	}
	if e.Scenario.Masters > 1 {
		return nil
	}
	return noGuard(ctx, e.Kind)
}

func threeMembers(ctx context.Context, e *kindtarget.Env) (err error) {
	c, err := kind.Create(ctx, kind.Config{Name: e.Kind.Name() + "-etcd", ControlPlanes: 3, Progress: e.Progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Delete()) }()
	g, err := openGuarded(ctx, c)
	if err != nil {
		return err
	}
	if err := g.install(ctx); err != nil {
		return err
	}
	closed, opened, err := g.killAndHeal(ctx)
	if err != nil {
		return err
	}
	return record(e, "etcd-guard", []bench.Row{
		within("A member of three dies: until no guard can be evicted", closed, memberBound),
		within("It comes back: until one guard can be evicted", opened, memberBound),
	})
}

func within(what string, took, bound time.Duration) bench.Row {
	return bench.Row{What: what, Measured: seconds(took), Bound: "max " + seconds(bound), Compared: "-", Held: took <= bound}
}

func noGuard(ctx context.Context, c *kind.Cluster) error {
	return until(ctx, "the guard of a single member is removed", reachable, func(ctx context.Context) error {
		budgets, err := c.Clientset().PolicyV1().PodDisruptionBudgets(etcdguard.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		deployments, err := c.Clientset().AppsV1().Deployments(etcdguard.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err //nolint:wrapcheck // until wraps it
		}
		if len(budgets.Items)+len(deployments.Items) > 0 {
			return fmt.Errorf("%w: one node has %d budgets and %d guards", errGuard, len(budgets.Items), len(deployments.Items))
		}
		return nil
	})
}

// killAndHeal kills a member and restarts it, and returns how long the budget took to close and to open again.
func (g *guarded) killAndHeal(ctx context.Context) (closed, opened time.Duration, err error) {
	if err := g.budget(ctx, 3, 1); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := g.kill(ctx); err != nil {
		return 0, 0, err
	}
	if err := g.budget(ctx, 2, 0); err != nil {
		return 0, 0, err
	}
	closed = time.Since(began)
	if err := g.refused(ctx); err != nil {
		return 0, 0, err
	}
	began = time.Now()
	if err := g.heal(ctx); err != nil {
		return 0, 0, err
	}
	if err := g.budget(ctx, 3, 1); err != nil {
		return 0, 0, err
	}
	opened = time.Since(began)
	return closed, opened, g.oneGoes(ctx)
}

// refused checks that the guard of the dead member is not ready, that the others are, and that none of these can be
// evicted.
func (g *guarded) refused(ctx context.Context) error {
	pods, err := g.guards(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		dead := pod.Spec.NodeName == g.victim
		if probed(pod) == dead {
			return fmt.Errorf("%w: the guard on node %s, ready: %t, dead member: %t", errGuard, pod.Spec.NodeName, probed(pod), dead)
		}
		if dead {
			continue
		}
		if err := g.evict(ctx, pod); !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("%w: with a dead member, the eviction of another's guard returns: %w", errGuard, orGranted(err))
		}
	}
	return nil
}

func (g *guarded) oneGoes(ctx context.Context) error {
	pods, err := g.guards(ctx)
	if err != nil {
		return err
	}
	if err := g.evict(ctx, &pods[0]); err != nil {
		return fmt.Errorf("%w: with healthy members, an eviction returns: %w", errGuard, err)
	}
	if err := g.evict(ctx, &pods[1]); !apierrors.IsTooManyRequests(err) {
		return fmt.Errorf("%w: after one eviction, that of a second guard returns: %w", errGuard, orGranted(err))
	}
	return nil
}

// probed reports the kubelet's result for a guard. The condition Ready is also False for pods of lost nodes.
func probed(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
}

var errGranted = errors.New("granted")

func orGranted(err error) error {
	if err == nil {
		return errGranted
	}
	return err
}

func guardImage() string { return kindtarget.FullImageName("guard") }

func guardObjects() (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
	host, err := etcdguard.NewHost(clusterOf(configv1.HighlyAvailableTopologyMode), 3, guardImage())
	if err != nil {
		return nil, nil, fmt.Errorf("describe the cluster to the guard: %w", err)
	}
	deployment, err := etcdguard.Deployment(host)
	if err != nil {
		return nil, nil, fmt.Errorf("make the guard: %w", err)
	}
	budget, err := etcdguard.DisruptionBudget(host)
	if err != nil {
		return nil, nil, fmt.Errorf("make the guard's budget: %w", err)
	}
	return deployment, budget, nil
}
