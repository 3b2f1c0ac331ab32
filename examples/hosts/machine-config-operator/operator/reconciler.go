// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/topology"
)

const staleCache = 50 * time.Millisecond

type reader struct {
	// client reads from the cache and writes as fieldManager, direct reads without the cache.
	client client.Client
	direct client.Reader
	// known is the last topology that was read. It remains when the Infrastructure is deleted.
	known *topology.Cluster
}

// managed returns the MachineConfiguration if it exists and is managed, else nil.
func (r *reader) managed(ctx context.Context) (*operatorv1.MachineConfiguration, error) {
	operator, err := get(ctx, r.client, client.ObjectKey{Name: machineconfig.OperatorName}, &operatorv1.MachineConfiguration{})
	if operator == nil || err != nil {
		return nil, err
	}
	if state := operator.Spec.ManagementState; state == operatorv1.Unmanaged || state == operatorv1.Removed {
		logr.FromContextOrDiscard(ctx).Info("Not to be managed", "managementState", state)
		return nil, nil
	}
	return operator, nil
}

// read returns nil if no topology was ever read.
func (r *reader) read(ctx context.Context, nodes client.Reader) (*state, error) {
	infrastructure, err := get(ctx, r.client, client.ObjectKey{Name: machineconfig.OperatorName}, &configv1.Infrastructure{})
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
	if r.known == nil {
		return nil, nil
	}
	s := &state{cluster: *r.known, reported: r.known.ControlPlane.Reported}
	var list corev1.NodeList
	var pools mcfgv1.MachineConfigPoolList
	if err := errors.Join(nodes.List(ctx, &list), r.client.List(ctx, &pools)); err != nil {
		return nil, fmt.Errorf("listing nodes and pools: %w", err)
	}
	s.nodes = list.Items
	// The cache lists in a random order, and whose turn it is must not depend on that.
	slices.SortFunc(s.nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range pools.Items {
		s.pools = append(s.pools, &pools.Items[i])
	}
	return s, nil
}

// nodeReconciler assigns configurations, annotates nodes and processes their requests.
type nodeReconciler struct {
	reader
	clientset kubernetes.Interface
	rules     rules
	// drains are those in progress, by the node's UID.
	drains map[types.UID]*drain
}

// Reconcile implements reconcile.Reconciler. It never runs concurrently.
func (r *nodeReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	operator, err := r.managed(ctx)
	if err != nil || operator == nil && r.rules.conditions {
		return reconcile.Result{}, err
	}
	s, err := r.read(ctx, r.client)
	if err != nil || s == nil {
		return reconcile.Result{}, err
	}
	if slices.ContainsFunc(s.nodes, func(node corev1.Node) bool {
		request, err := machineconfig.Requested(node.Annotations)
		return request != nil || err != nil
	}) {
		// The cache may lack this operator's last writes.
		if s, err = r.read(ctx, r.direct); err != nil || s == nil {
			return reconcile.Result{}, err
		}
	}
	turns, turnsErr := r.assign(ctx, *s)
	progress := r.process(ctx, *s)
	if err := errors.Join(turnsErr, progress.err()); onlyStale(err) {
		return reconcile.Result{RequeueAfter: staleCache}, nil
	}
	if r.rules.conditions {
		err := publish(ctx, r.client, operator, append(poolConditions(*s, turns, turnsErr), progress.conditions()...))
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: staleCache}, nil
		} else if err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: progress.next()}, nil
}

func onlyStale(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !onlyStale(err) })
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// assign writes the topology and the configurations of the nodes whose turn it is, and returns how many nodes that are.
func (r *nodeReconciler) assign(ctx context.Context, s state) (int, error) {
	var errs []error
	for i := range s.nodes {
		// An empty topology keeps the previous annotation.
		if mode := string(s.reported); mode != "" {
			errs = append(errs, annotate(ctx, r.client, &s.nodes[i], machineconfig.TopologyAnnotation, mode))
		}
	}
	if r.rules.turns == nil {
		return 0, errors.Join(errs...)
	}
	turns, err := r.rules.turns(s)
	errs = append(errs, err)
	for i := range s.nodes {
		if target := turns[s.nodes[i].Name]; target != "" {
			errs = append(errs, annotate(ctx, r.client, &s.nodes[i], machineconfig.DesiredConfigAnnotation, target))
		}
	}
	return len(turns), errors.Join(errs...)
}

// process does what nodes request.
func (r *nodeReconciler) process(ctx context.Context, s state) progress {
	result := progress{waiting: map[string]string{}, failed: map[string]error{}}
	var pending, draining []string
	live := map[types.UID]bool{}
	for i := range s.nodes {
		node := &s.nodes[i]
		live[node.UID] = true
		if machineconfig.MayRestart(node.Annotations) {
			draining = append(draining, node.Name)
		}
		request, err := machineconfig.Requested(node.Annotations)
		switch {
		case err != nil:
			result.failed[node.Name] = err // never acknowledged, or the node restarts without a drain
		case request == nil:
			delete(r.drains, node.UID)
		case request.Verb == machineconfig.VerbUncordon:
			delete(r.drains, node.UID)
			result.fail(node.Name, r.uncordon(ctx, node, *request))
		case r.started(node, *request):
			draining, result.draining = append(draining, node.Name), append(result.draining, node.Name)
		default:
			pending = append(pending, node.Name)
		}
	}
	for uid := range r.drains {
		if !live[uid] {
			delete(r.drains, uid)
		}
	}
	started := slices.Clone(result.draining)
	if len(pending) > 0 {
		start, waiting, err := r.rules.mayStart(s, pending, draining)
		result.waiting, result.problem = waiting, err
		draining, result.draining = append(draining, start...), append(result.draining, start...)
	}
	r.drainAll(ctx, s, draining, started, &result)
	return result
}

// started reports whether a drain of the node is in progress, perhaps of an earlier process.
func (r *nodeReconciler) started(node *corev1.Node, request machineconfig.Request) bool {
	d := r.drains[node.UID]
	return d != nil && d.request == request || node.Spec.Unschedulable
}

// drainAll carries out a step of each drain that is required, and acknowledges the others.
func (r *nodeReconciler) drainAll(ctx context.Context, s state, draining, started []string, result *progress) {
	var left []string
	for i := range s.nodes {
		node := &s.nodes[i]
		if !slices.Contains(result.draining, node.Name) {
			continue
		}
		request, err := machineconfig.Requested(node.Annotations)
		if err != nil || request == nil {
			continue
		}
		decision := machineconfig.DrainDecision{Required: true}
		if !r.rules.keepsDecision || !slices.Contains(started, node.Name) {
			decision, err = r.rules.required(s, node.Name, draining, func(in *machineconfig.Inputs) error { return r.load(ctx, in) })
		}
		done := false
		switch {
		case err != nil:
		case decision.Required:
			done, err = r.step(ctx, node, *request)
		default:
			logr.FromContextOrDiscard(ctx).Info("Not drained", "node", node.Name, "reason", decision.Reason, "message", decision.Message)
			done, err = true, r.skip(ctx, node, *request)
		}
		result.fail(node.Name, err)
		if !done {
			left = append(left, node.Name)
		}
	}
	result.draining = left
}

// load reads what the decision needs to see whether pods fit on other nodes. An empty list is not nil, which would mean
// that it was not read.
func (r *nodeReconciler) load(ctx context.Context, in *machineconfig.Inputs) error {
	pods, budgets, sets, stateful := &corev1.PodList{}, &policyv1.PodDisruptionBudgetList{}, &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{pods, budgets, sets, stateful} {
		if err := r.direct.List(ctx, list); err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
	}
	in.Pods, in.Budgets = append([]corev1.Pod{}, pods.Items...), append([]policyv1.PodDisruptionBudget{}, budgets.Items...)
	in.ReplicaSets, in.StatefulSets = append([]appsv1.ReplicaSet{}, sets.Items...), append([]appsv1.StatefulSet{}, stateful.Items...)
	return nil
}
