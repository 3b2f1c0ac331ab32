package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

// annotate tells the daemons of a stock machine-config operator the topology, by an annotation on every node.
func (p *patcher) annotate(ctx context.Context, f found) []patch.Result {
	said := []patch.Result{toldResult}
	for i := range f.inputs.Nodes {
		result, err := p.annotateNode(ctx, f, &f.inputs.Nodes[i])
		if err != nil {
			result = nodeWords.Failed(machineconfig.Name, err)
		}
		if result != nil {
			said = append(said, *result)
		}
	}
	return said
}

// annotateNode decides by what is cached of the node whether there may be something to do, and on the node as it is what that is: whose
// the annotation is, the cache does not tell.
func (p *patcher) annotateNode(ctx context.Context, f found, cached *corev1.Node) (*patch.Result, error) {
	step := machineconfig.AnnotateTopology(f.inputs, cached)
	if step.Intent == nil {
		_, has := cached.Annotations[machineconfig.TopologyAnnotation]
		if !has || step.Result == nil || p.notOurs[cached.UID] {
			return step.Result, nil
		}
	}
	live, node, err := manager.Read[corev1.Node](ctx, p.live, manager.Object{GroupVersionKind: nodeObjects.GroupVersionKind, Name: cached.Name})
	if err != nil || live == nil {
		return nil, err
	}
	step = machineconfig.AnnotateTopology(f.inputs, node)
	p.notOurs[node.UID] = step.Intent == nil && !step.Release
	switch {
	case step.Intent != nil:
		outcome, err := p.applier.Apply(ctx, live, step.Intent)
		return nodeWords.Result(ctx, machineconfig.Name, outcome, err), nil
	case step.Release:
		outcome, err := p.applier.Release(ctx, live, apply.ReleaseOptions{})
		if err != nil {
			return nil, fmt.Errorf("taking the topology off node %s: %w", node.Name, err)
		}
		if result := nodeWords.Released(machineconfig.Name, *step.Result, outcome, nil); result != nil {
			return result, nil
		}
	}
	return step.Result, nil
}
