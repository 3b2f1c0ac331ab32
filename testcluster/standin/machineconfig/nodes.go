// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/testcluster/standin"
)

func (r *reconciler) reconcile(ctx context.Context, _ client.ObjectKey) (time.Duration, error) {
	operator, err := r.managed(ctx)
	if err != nil || operator == nil && !r.stock {
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
	annotated := r.annotateTopology(ctx, *s)
	progress := r.process(ctx, *s)
	if err := errors.Join(annotated, progress.err()); standin.OnlyStale(err) {
		return 0, err
	}
	if !r.stock {
		if err := r.publish(ctx, operator, progress.conditions()); err != nil {
			return 0, err
		}
	}
	return progress.next(), annotated
}

// annotateTopology writes the topology to the nodes. An empty one keeps the previous annotation.
func (r *reconciler) annotateTopology(ctx context.Context, s state) error {
	mode := string(s.cluster.ControlPlane.Reported)
	if mode == "" {
		return nil
	}
	var errs []error
	for i := range s.nodes {
		errs = append(errs, r.annotate(ctx, &s.nodes[i], machineconfig.TopologyAnnotation, mode))
	}
	return errors.Join(errs...)
}

// process does what nodes request.
func (r *reconciler) process(ctx context.Context, s state) progress {
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
	if len(pending) > 0 {
		start, waiting, err := r.mayStart(s, pending, draining)
		result.waiting, result.problem = waiting, err
		draining, result.draining = append(draining, start...), append(result.draining, start...)
	}
	r.drainAll(ctx, s, draining, &result)
	return result
}

// started reports whether a drain of the node is in progress, perhaps of an earlier process.
func (r *reconciler) started(node *corev1.Node, request machineconfig.Request) bool {
	d := r.drains[node.UID]
	return d != nil && d.request == request || node.Spec.Unschedulable
}

// drainAll carries out a step of each drain that is required, and acknowledges the others.
func (r *reconciler) drainAll(ctx context.Context, s state, draining []string, result *progress) {
	var left []string
	for i := range s.nodes {
		node := &s.nodes[i]
		request, err := machineconfig.Requested(node.Annotations)
		if !slices.Contains(result.draining, node.Name) || err != nil || request == nil {
			continue
		}
		done := false
		decision, err := r.required(s, node.Name, draining)
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
