// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/topology"
)

type patcher struct {
	controller.Environment
	settings     decision.Inputs
	drainTimeout time.Duration
	applier      *apply.Applier
	writer       client.Writer        // creates and deletes, with --dry-run
	kube         kubernetes.Interface // for nodes and pods; it and events are nil with Once
	events       events.EventRecorder
	clock        clock.PassiveClock

	drains   map[types.UID]*drain // in progress, by node
	invalid  map[string]string    // invalid requests that were reported, by node
	notOwned map[types.UID]bool   // nodes with a topology annotation that is neither needed nor of this module
	settling decision.Decision    // restarts the node, and is not stable yet
	// Since when it has been the decision.
	settlingSince time.Time
}

// observed is the content of the caches: inputs, with only metadata of nodes, and the objects to write, nil if they do
// not exist.
type observed struct {
	inputs                                 decision.Inputs
	operator, machineConfig, kubeletConfig *unstructured.Unstructured
	stockOperator                          bool // drains nodes
}

func (p *patcher) reconcile(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
	f, err := p.gather(ctx, cluster)
	if err != nil {
		return nil, patch.Result{}, err
	}
	if unknown := patch.TopologyKnown(cluster); unknown != nil {
		return f.operator, *unknown, nil
	}
	var results []*patch.Result
	if f.stockOperator {
		p.dropDrains(ctx, nil)
		results = p.annotate(ctx, f)
	} else {
		results = p.handleRequests(ctx, f)
	}
	outdated, err := machineconfig.PendingChanges(pointers(f.inputs.Pools), pointers(f.inputs.Nodes))
	if err != nil {
		results = append(results, poolFailure(err))
	}
	if len(outdated) > 0 {
		results = append(results, &patch.Result{State: patch.Progressing, Reason: machineconfig.ReasonUpdatesPaused,
			Message: "Paused pools keep updates from their nodes: " + strings.Join(outdated, "; ")})
	}
	if f.stockOperator {
		results = append(results, p.shutdown(ctx, f))
	}
	return f.operator, patch.Combine(results...), nil
}

func (p *patcher) gather(ctx context.Context, cluster *topology.Cluster) (observed, error) {
	f := observed{inputs: p.settings}
	in := &f.inputs
	in.Cluster = cluster
	var errs [7]error
	var stock *unstructured.Unstructured
	f.operator, in.MachineConfiguration, errs[0] = controller.Read[operatorv1.MachineConfiguration](ctx, p.Reader, operatorObject)
	stock, _, errs[1] = controller.Read[unstructured.Unstructured](ctx, p.Reader, controllerConfigObject)
	f.machineConfig, in.MachineConfig, errs[2] = controller.Read[mcfgv1.MachineConfig](ctx, p.Reader, machineConfigObject)
	f.kubeletConfig, _, errs[3] = controller.Read[mcfgv1.KubeletConfig](ctx, p.Reader, ownKubeletConfigObject)
	in.Pools, errs[4] = list[mcfgv1.MachineConfigPool](ctx, p.Reader, poolObjects)
	in.KubeletConfigs, errs[5] = list[mcfgv1.KubeletConfig](ctx, p.Reader, kubeletConfigObjects)
	in.Nodes, errs[6] = p.nodesMetadata(ctx)
	f.stockOperator = stock != nil
	return f, errors.Join(errs[:]...)
}

func list[T any](ctx context.Context, from client.Reader, o controller.Object) ([]T, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(o.GroupVersion().WithKind(o.Kind + "List"))
	if err := from.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing %s: %w", o.Kind, err)
	}
	slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	var typed struct {
		Items []T `json:"items"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.UnstructuredContent(), &typed); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.Kind, err)
	}
	return typed.Items, nil
}

func (p *patcher) nodesMetadata(ctx context.Context) ([]corev1.Node, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(nodeObjects.GroupVersion().WithKind("NodeList"))
	if err := p.Metadata(nodeObjects).List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	nodes := make([]corev1.Node, len(all.Items))
	for i, item := range all.Items {
		nodes[i].ObjectMeta = item.ObjectMeta
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

func pointers[T any](items []T) []*T {
	to := make([]*T, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}
