// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/standin"
)

// nodeReconciler assigns configurations, annotates nodes and processes their requests.
type nodeReconciler struct {
	reader
	clientset kubernetes.Interface
	rules     rules
	// drains are those in progress, by the node's UID.
	drains map[types.UID]*drain
}

func (r *nodeReconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	operator, err := r.managed(ctx)
	if err != nil || operator == nil && r.rules.conditions {
		return 0, err
	}
	s, err := r.read(ctx, r.client)
	if err != nil || s == nil {
		return 0, err
	}
	if slices.ContainsFunc(s.nodes, func(node corev1.Node) bool {
		request, err := machineconfig.Requested(node.Annotations)
		return request != nil || err != nil
	}) {
		// The cache may lack this operator's last writes.
		if s, err = r.read(ctx, r.direct); err != nil || s == nil {
			return 0, err
		}
	}
	turns, turnsErr := r.assign(ctx, *s)
	progress := r.process(ctx, *s)
	if err := errors.Join(turnsErr, progress.err()); standin.OnlyStale(err) {
		return 0, err
	}
	if r.rules.conditions {
		if err := r.publish(ctx, operator, append(poolConditions(*s, turns, turnsErr), progress.conditions()...)); err != nil {
			return 0, err
		}
	}
	return progress.next(), nil
}

// assign writes the topology and the configurations of the nodes whose turn it is, and returns how many nodes that are.
func (r *nodeReconciler) assign(ctx context.Context, s state) (int, error) {
	var errs []error
	for i := range s.nodes {
		// An empty topology keeps the previous annotation.
		if mode := string(s.reported); mode != "" {
			errs = append(errs, r.annotate(ctx, &s.nodes[i], machineconfig.TopologyAnnotation, mode))
		}
	}
	if r.rules.turns == nil {
		return 0, errors.Join(errs...)
	}
	turns, err := r.rules.turns(s)
	errs = append(errs, err)
	for i := range s.nodes {
		if target := turns[s.nodes[i].Name]; target != "" {
			errs = append(errs, r.annotate(ctx, &s.nodes[i], machineconfig.DesiredConfigAnnotation, target))
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
