// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

// guardReconciler maintains the guards and their budget.
type guardReconciler struct {
	reader
	// voters returns how many voting members etcd has; -1 while they cannot be read.
	voters func() int
}

func (r *guardReconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	etcd, cluster, err := r.read(ctx)
	if err != nil || etcd == nil {
		return 0, err
	}
	state, err := r.reconcileGuards(ctx, *cluster)
	if standin.OnlyStale(err) {
		return 0, err
	}
	return 0, errors.Join(err, r.publish(ctx, etcd, guardConditions(state, err)))
}

// guardState is the result of a reconciliation.
type guardState struct {
	reason, message string
	// done means that nothing is left to do.
	done bool
}

func (r *guardReconciler) reconcileGuards(ctx context.Context, cluster topology.Cluster) (*guardState, error) {
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := r.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if err := r.client.List(ctx, &pods, client.InNamespace(etcdguard.Namespace), client.MatchingLabels(guardLabels)); err != nil {
		return nil, fmt.Errorf("listing guards: %w", err)
	}
	budget, err := standin.Get(ctx, r.client, etcdguard.Namespace, etcdguard.PodsBudgetName, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return nil, err
	}
	voters := r.voters()
	want, err := wantedGuards(cluster, nodes.Items, max(voters, 0))
	if err != nil {
		return nil, err
	}
	if want.budget != nil {
		return r.ensure(ctx, want, budget, pods.Items, memberNodes(cluster, nodes.Items))
	}
	within := cluster.ControlPlane.Mode != configv1.ExternalTopologyMode
	if within && voters != 1 && (budget != nil || len(pods.Items) > 0) {
		return waitingForMembers(voters), nil
	}
	return r.removeAll(ctx, budget, pods.Items)
}

// removeAll deletes the budget first: guards without it block nothing.
func (r *guardReconciler) removeAll(ctx context.Context, budget *policyv1.PodDisruptionBudget, pods []corev1.Pod) (*guardState, error) {
	if err := standin.EnsureBudget(ctx, r.client, budget, nil); err != nil {
		return nil, err
	}
	for i := range pods {
		if err := standin.Delete(ctx, r.client, &pods[i]); err != nil {
			return nil, err
		}
	}
	if budget != nil || len(pods) > 0 {
		return &guardState{reason: reasonRemoving, message: "The guards are being removed: the topology needs none"}, nil
	}
	return noGuards(), nil
}

// ensure writes the budget before the guards. A guard that differs or has ended is replaced, that of a cordoned node
// stays.
func (r *guardReconciler) ensure(
	ctx context.Context, want guards, budget *policyv1.PodDisruptionBudget, live []corev1.Pod, nodes []corev1.Node,
) (*guardState, error) {
	if err := standin.EnsureBudget(ctx, r.client, budget, want.budget); err != nil {
		return nil, err
	}
	missing := 0
	for _, pod := range want.pods {
		i := slices.IndexFunc(live, func(p corev1.Pod) bool { return p.Name == pod.Name })
		switch {
		case i < 0:
			missing++
			if err := standin.Create(ctx, r.client, pod); err != nil {
				return nil, err
			}
		case ended(&live[i]) || !equality.Semantic.DeepDerivative(pod.Spec, live[i].Spec):
			missing++
			if err := standin.Delete(ctx, r.client, &live[i]); err != nil { // the event of the deletion causes the creation
				return nil, err
			}
		case !ready(&live[i]):
			missing++
		}
	}
	for i := range live {
		if !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == live[i].Spec.NodeName }) {
			missing++
			if err := standin.Delete(ctx, r.client, &live[i]); err != nil {
				return nil, err
			}
		}
	}
	if missing > 0 {
		return &guardState{reason: reasonRollingOut, message: "Not every guard is ready yet; if it lasts, check etcd on the nodes of the others"}, nil
	}
	return allGuards(len(want.pods)), nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
