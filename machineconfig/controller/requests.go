// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
)

type nodeRequest struct {
	node    string
	uid     types.UID
	request machineconfig.Request
	byFit   bool // the node is drained only if its pods fit on other nodes
}

// requests are the pending requests of all nodes, and the names of the nodes that may restart.
type requests struct {
	drain, uncordon []nodeRequest
	restarting      []string
}

func (p *patcher) handleRequests(ctx context.Context, f observed) []*patch.Result {
	if f.inputs.OptedOut() {
		p.dropDrains(ctx, nil)
		return []*patch.Result{&optedOutResult}
	}
	all := p.requests(ctx, f.inputs)
	results := []*patch.Result{&handlingResult}
	if len(p.invalid) > 0 {
		results = append(results, &invalidResult)
	}
	none := len(all.drain)+len(all.uncordon) == 0
	switch {
	case p.Options.DryRun && !none:
		return append(results, &dryRunResult)
	case p.Once && !none:
		return append(results, &pendingResult)
	case p.Options.DryRun || p.Once:
		return results
	}
	for _, r := range all.uncordon {
		results = append(results, failure(p.complete(ctx, r, "")))
	}
	return append(results, p.handleDrains(ctx, f, all)...)
}

// requests returns the requests of all nodes. An invalid one is reported once.
func (p *patcher) requests(ctx context.Context, in decision.Inputs) requests {
	var all requests
	byFit := in.Policy == machineconfig.DrainWorkers && in.Cluster.ControlPlane.Mode == configv1.SingleReplicaTopologyMode
	invalid := map[string]string{}
	for i := range in.Nodes {
		node := &in.Nodes[i]
		if patch.OptsOut(node, machineconfig.Name) {
			continue
		}
		if machineconfig.MayRestart(node.Annotations) {
			all.restarting = append(all.restarting, node.Name)
		}
		request, err := machineconfig.Requested(node.Annotations)
		switch {
		case err != nil:
			value := node.Annotations[machineconfig.DesiredDrainAnnotation]
			if before, known := p.invalid[node.Name]; !known || before != value {
				logr.FromContextOrDiscard(ctx).Error(err, "Request is invalid and ignored", "node", node.Name)
				if !p.Options.DryRun && !p.Once {
					p.event(ctx, nodeRequest{node: node.Name, uid: node.UID}, corev1.EventTypeWarning, patch.ReasonInvalid, "Answer", invalidResult.Message)
				}
			}
			invalid[node.Name] = value
		case request == nil:
		case request.Verb == machineconfig.VerbDrain:
			all.drain = append(all.drain, nodeRequest{node.Name, node.UID, *request, byFit})
		default:
			all.uncordon = append(all.uncordon, nodeRequest{node.Name, node.UID, *request, false})
		}
	}
	p.invalid = invalid
	return all
}

// handleDrains carries out a step of each drain that may run and is required, and completes those that are not
// required.
func (p *patcher) handleDrains(ctx context.Context, f observed, all requests) []*patch.Result {
	if slices.ContainsFunc(all.drain, func(r nodeRequest) bool { return p.drains[r.uid] == nil }) {
		// The cache may lack this module's last writes, and has only metadata.
		nodes, err := p.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return []*patch.Result{failure(fmt.Errorf("listing nodes: %w", err))}
		}
		f.inputs.Nodes = nodes.Items
		all = p.requests(ctx, f.inputs)
	}
	draining, results := p.mayDrain(ctx, f, all)
	var required []nodeRequest
	for _, r := range all.drain {
		if !slices.Contains(draining, r.node) {
			continue
		}
		decided, err := p.drainRequired(ctx, f.inputs, draining, r)
		switch {
		case err != nil:
			results = append(results, failure(fmt.Errorf("whether node %s is drained: %w", r.node, err)))
		case decided.Required:
			required = append(required, r)
		default:
			results = append(results, failure(p.complete(ctx, r, decided.Message)))
		}
	}
	p.dropDrains(ctx, required)
	for _, r := range required {
		results = append(results, p.step(ctx, r))
	}
	return results
}

// mayDrain returns the nodes that may be drained or restart now, and results of those that wait. A drain in progress,
// of which this process or another one has cordoned the node, continues.
func (p *patcher) mayDrain(ctx context.Context, f observed, all requests) ([]string, []*patch.Result) {
	requests := machineconfig.DrainState{
		Cluster: *f.inputs.Cluster, Pools: pointers(f.inputs.Pools), Nodes: pointers(f.inputs.Nodes), Draining: all.restarting,
	}
	for _, r := range all.drain {
		started := p.drains[r.uid] != nil
		if !started {
			i := slices.IndexFunc(f.inputs.Nodes, func(node corev1.Node) bool { return node.UID == r.uid })
			var err error
			if started, err = ownsCordon(&f.inputs.Nodes[i]); err != nil {
				return nil, []*patch.Result{failure(err)}
			}
		}
		if started {
			requests.Draining = append(requests.Draining, r.node)
		} else {
			requests.Pending = append(requests.Pending, r.node)
		}
	}
	if len(requests.Pending) == 0 {
		return requests.Draining, nil
	}
	start, held, err := machineconfig.MayStart(requests)
	var results []*patch.Result
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Nodes wait because of their pools")
		results = append(results, poolFailure(err))
	}
	for _, node := range slices.Sorted(maps.Keys(held)) {
		results = append(results, decision.Waits(held[node]))
	}
	return append(requests.Draining, start...), results
}

// drainRequired decides whether the node is drained. Whether its pods fit is decided only before the first eviction,
// since evicted pods are pending.
func (p *patcher) drainRequired(ctx context.Context, in decision.Inputs, draining []string, r nodeRequest) (machineconfig.DrainDecision, error) {
	in.Node, in.Draining = r.node, draining
	if r.byFit {
		if d := p.drains[r.uid]; d != nil && d.nodeRequest == r {
			return machineconfig.DrainDecision{Required: true}, nil
		}
		if err := p.readPods(ctx, &in); err != nil {
			return machineconfig.DrainDecision{}, err
		}
	}
	decided, err := machineconfig.DrainRequired(in.Inputs)
	if p.drains[r.uid] == nil {
		logr.FromContextOrDiscard(ctx).V(1).Info("Decided whether to drain", "node", r.node, "required", decided.Required,
			"reason", decided.Reason, "message", decided.Message, "detail", decided.Detail)
	}
	return decided, err
}

// readPods reads the inputs of package fit.
func (p *patcher) readPods(ctx context.Context, in *decision.Inputs) error {
	pods, budgets, sets, stateful := &corev1.PodList{}, &policyv1.PodDisruptionBudgetList{}, &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{pods, budgets, sets, stateful} {
		if err := p.Live.List(ctx, list); err != nil {
			return fmt.Errorf("reading a %T: %w", list, err)
		}
	}
	// A nil list would mean that it was not read.
	in.Pods, in.Budgets = append([]corev1.Pod{}, pods.Items...), append([]policyv1.PodDisruptionBudget{}, budgets.Items...)
	in.ReplicaSets, in.StatefulSets = append([]appsv1.ReplicaSet{}, sets.Items...), append([]appsv1.StatefulSet{}, stateful.Items...)
	return nil
}
