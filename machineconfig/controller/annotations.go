// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
)

func (p *patcher) annotate(ctx context.Context, f observed) []*patch.Result {
	results := []*patch.Result{&annotatedResult}
	for i := range f.inputs.Nodes {
		results = append(results, p.annotateNode(ctx, f, &f.inputs.Nodes[i]))
	}
	return results
}

// annotateNode reads the node from the API server before a write, because the cache has no managedFields.
func (p *patcher) annotateNode(ctx context.Context, f observed, cached *corev1.Node) *patch.Result {
	step := decision.AnnotateTopology(f.inputs, cached)
	_, has := cached.Annotations[machineconfig.TopologyAnnotation]
	if step.Intent == nil && (!has || step.Result == nil || p.notOwned[cached.UID]) {
		return step.Result
	}
	live, node, err := controller.Read[corev1.Node](ctx, p.Live, controller.Object{GroupVersionKind: nodeObjects.GroupVersionKind, Name: cached.Name})
	if err != nil {
		return nodeMessages.Failed(machineconfig.Name, err)
	}
	if live == nil {
		return nil
	}
	step = decision.AnnotateTopology(f.inputs, node)
	p.notOwned[node.UID] = step.Intent == nil && !step.Release
	switch {
	case step.Intent != nil:
		outcome, err := p.applier.Apply(ctx, live, step.Intent)
		return nodeMessages.Result(ctx, machineconfig.Name, outcome, err)
	case step.Release:
		outcome, err := p.applier.Release(ctx, live, apply.ReleaseOptions{})
		if result := nodeMessages.Released(machineconfig.Name, *step.Result, outcome, err); result != nil {
			return result
		}
	}
	return step.Result
}
