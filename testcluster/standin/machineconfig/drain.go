// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	kubectl "k8s.io/kubectl/pkg/drain"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
)

// drain is a drain in progress.
type drain struct {
	request machineconfig.Request
	// pods are those on the node when it was cordoned. Later ones tolerate the cordon, so the drain would never end.
	pods sets.Set[types.UID]
}

// helper has the settings of the stock controller.
func (r *reconciler) helper(ctx context.Context) *kubectl.Helper {
	return &kubectl.Helper{
		Ctx: ctx, Client: r.clientset, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
	}
}

// step cordons the node and evicts its pods, or acknowledges the request if none is left. It does not wait for pods.
func (r *reconciler) step(ctx context.Context, node *corev1.Node, request machineconfig.Request) (done bool, err error) {
	helper := r.helper(ctx)
	if err := r.cordon(ctx, node, true); err != nil {
		return false, err
	}
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return false, fmt.Errorf("finding the pods of node %s: %w", node.Name, errors.Join(errs...))
	}
	pods := list.Pods()
	d := r.drains[node.UID]
	if d == nil || d.request != request {
		d = &drain{request: request, pods: sets.New[types.UID]()}
		for i := range pods {
			d.pods.Insert(pods[i].UID)
		}
		r.drains[node.UID] = d
		logr.FromContextOrDiscard(ctx).Info("Draining", "node", node.Name, "request", request.String(), "pods", len(pods))
	}
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !d.pods.Has(pod.UID) })
	if len(pods) == 0 {
		return true, r.acknowledge(ctx, node, request)
	}
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			err = errors.Join(err, client.IgnoreNotFound(helper.EvictPod(pods[i], policyv1.SchemeGroupVersion)))
		}
	}
	return false, err
}

// skip acknowledges a drain that is not required. A cordon of a drain that has become unnecessary ends.
func (r *reconciler) skip(ctx context.Context, node *corev1.Node, request machineconfig.Request) error {
	if r.drains[node.UID] != nil {
		if err := r.cordon(ctx, node, false); err != nil {
			return err
		}
	}
	return r.acknowledge(ctx, node, request)
}

func (r *reconciler) uncordon(ctx context.Context, node *corev1.Node, request machineconfig.Request) error {
	if err := r.cordon(ctx, node, false); err != nil {
		return err
	}
	return r.acknowledge(ctx, node, request)
}

func (r *reconciler) cordon(ctx context.Context, node *corev1.Node, unschedulable bool) error {
	if err := kubectl.RunCordonOrUncordon(r.helper(ctx), node.DeepCopy(), unschedulable); err != nil {
		return fmt.Errorf("changing the cordon of node %s: %w", node.Name, err)
	}
	return nil
}

func (r *reconciler) acknowledge(ctx context.Context, node *corev1.Node, request machineconfig.Request) error {
	if err := r.annotate(ctx, node, machineconfig.LastAppliedDrainAnnotation, request.String()); err != nil {
		return err
	}
	delete(r.drains, node.UID)
	return nil
}
