// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/topology"
)

const staleCache = 50 * time.Millisecond

type reader struct {
	// client reads from the cache and writes as fieldManager.
	client client.Client
	// known is the last topology that was read. It remains when the Infrastructure is deleted.
	known *topology.Cluster
}

// etcd returns the Etcd if it exists and is managed, else nil.
func (r *reader) etcd(ctx context.Context) (*operatorv1.Etcd, error) {
	etcd, err := get(ctx, r.client, client.ObjectKey{Name: etcdguard.OperatorName}, &operatorv1.Etcd{})
	if etcd == nil || err != nil {
		return nil, err
	}
	if state := etcd.Spec.ManagementState; state == operatorv1.Unmanaged || state == operatorv1.Removed {
		logr.FromContextOrDiscard(ctx).Info("Not to be managed", "managementState", state)
		return nil, nil
	}
	return etcd, nil
}

// cluster returns the current topology, or nil if none was ever read.
func (r *reader) cluster(ctx context.Context) (*topology.Cluster, error) {
	infrastructure, err := get(ctx, r.client, client.ObjectKey{Name: etcdguard.OperatorName}, &configv1.Infrastructure{})
	if err != nil {
		return nil, err
	}
	if infrastructure != nil {
		cluster, err := topology.FromInfrastructure(infrastructure)
		if err != nil {
			return nil, fmt.Errorf("reading the topology: %w", err)
		}
		r.known = &cluster
	}
	return r.known, nil
}

// guardReconciler maintains the guards and their budget.
type guardReconciler struct {
	reader
	image string
	// voters returns how many voting members etcd has; -1 while they cannot be read.
	voters func() int
}

// Reconcile implements reconcile.Reconciler. It never runs concurrently.
func (r *guardReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	etcd, err := r.etcd(ctx)
	if err != nil || etcd == nil {
		return reconcile.Result{}, err
	}
	state, err := r.reconcile(ctx)
	if onlyStale(err) {
		// The event of the write that made the cache stale may already have been processed.
		return reconcile.Result{RequeueAfter: staleCache}, nil
	}
	if state == nil && err == nil {
		return reconcile.Result{}, nil
	}
	published := publish(ctx, r.client, etcd, guardConditions(state, err))
	if apierrors.IsConflict(published) {
		return reconcile.Result{RequeueAfter: staleCache}, err
	}
	return reconcile.Result{}, errors.Join(err, published)
}

func onlyStale(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// guardState is the result of a reconciliation.
type guardState struct {
	reason, message string
	// done means that nothing is left to do.
	done bool
}

// reconcile returns nil if the topology or the nodes are not known yet.
func (r *guardReconciler) reconcile(ctx context.Context) (*guardState, error) {
	cluster, err := r.cluster(ctx)
	if err != nil || cluster == nil {
		return nil, err
	}
	var nodes corev1.NodeList
	var pods corev1.PodList
	if err := r.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	if err := r.client.List(ctx, &pods, client.InNamespace(etcdguard.Namespace), client.MatchingLabels(guardLabels)); err != nil {
		return nil, fmt.Errorf("listing guards: %w", err)
	}
	budget, err := get(ctx, r.client, client.ObjectKey{Namespace: etcdguard.Namespace, Name: etcdguard.PodsBudgetName}, &policyv1.PodDisruptionBudget{})
	if err != nil {
		return nil, err
	}
	voters := r.voters()
	want, err := wantedGuards(*cluster, nodes.Items, max(voters, 0), r.image)
	if err != nil {
		return nil, err
	}
	if want.budget != nil {
		return r.ensure(ctx, want, budget, pods.Items, memberNodes(*cluster, nodes.Items))
	}
	within := cluster.ControlPlane.Mode != configv1.ExternalTopologyMode
	if within && voters != 1 && (budget != nil || len(pods.Items) > 0) {
		return waitingForMembers(voters), nil
	}
	return r.removeAll(ctx, budget, pods.Items)
}

// removeAll deletes the budget first: guards without it block nothing.
func (r *guardReconciler) removeAll(ctx context.Context, budget *policyv1.PodDisruptionBudget, pods []corev1.Pod) (*guardState, error) {
	if err := ensureBudget(ctx, r.client, budget, nil); err != nil {
		return nil, err
	}
	for i := range pods {
		if err := remove(ctx, r.client, &pods[i]); err != nil {
			return nil, err
		}
	}
	if budget != nil || len(pods) > 0 {
		return &guardState{reason: etcdguard.ReasonRemoving, message: "The guards are being removed: the topology needs none"}, nil
	}
	return noGuards(), nil
}

// ensure writes the budget before the guards. A guard that differs or has ended is replaced, that of a cordoned node
// stays.
func (r *guardReconciler) ensure(
	ctx context.Context, want guards, budget *policyv1.PodDisruptionBudget, live []corev1.Pod, nodes []corev1.Node,
) (*guardState, error) {
	if err := ensureBudget(ctx, r.client, budget, want.budget); err != nil {
		return nil, err
	}
	missing := 0
	for _, pod := range want.pods {
		i := slices.IndexFunc(live, func(p corev1.Pod) bool { return p.Name == pod.Name })
		switch {
		case i < 0:
			missing++
			if err := create(ctx, r.client, pod); err != nil {
				return nil, err
			}
		case ended(&live[i]) || !equality.Semantic.DeepDerivative(pod.Spec, live[i].Spec):
			missing++
			if err := remove(ctx, r.client, &live[i]); err != nil { // the event of the deletion causes the creation
				return nil, err
			}
		case !ready(&live[i]):
			missing++
		}
	}
	for i := range live {
		if !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return node.Name == live[i].Spec.NodeName }) {
			missing++
			if err := remove(ctx, r.client, &live[i]); err != nil {
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
