package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// ask is a request, with the node as it was when it was read.
type ask struct {
	job
	on *corev1.Node
}

// requests are what the nodes ask for.
type requests struct {
	drain, uncordon []ask
	// leaving names the nodes that may leave, or did, and are not back.
	leaving []string
	// garbled tells that there is a request which cannot be understood.
	garbled bool
}

// answer carries out the drain protocol.
func (p *patcher) answer(ctx context.Context, f found) []patch.Result {
	if operator := f.inputs.MachineConfiguration; operator != nil && patch.OptsOut(operator.Annotations, machineconfig.Name) {
		p.drains.settle(ctx, nil)
		return []patch.Result{optedOutResult}
	}
	asked := p.asked(ctx, f.inputs.Nodes)
	said := []patch.Result{answeringResult}
	if asked.garbled {
		said = append(said, garbledResult)
	}
	if p.applier.DryRun {
		if len(asked.drain)+len(asked.uncordon) > 0 {
			said = append(said, dryRunResult)
		}
		return said
	}
	if p.once {
		if len(asked.drain)+len(asked.uncordon) > 0 {
			said = append(said, unansweredResult)
		}
		return said
	}
	for _, j := range asked.uncordon {
		said = append(said, p.inline(ctx, j.job, p.nodes.uncordon)...)
	}
	return append(said, p.drain(ctx, f, asked)...)
}

// asked reads the requests off the nodes. One that cannot be understood is told of on its node, once.
func (p *patcher) asked(ctx context.Context, all []corev1.Node) requests {
	var asked requests
	garbled := map[string]string{}
	for i := range all {
		node := &all[i]
		if patch.OptsOut(node.Annotations, machineconfig.Name) {
			continue
		}
		if machineconfig.HasLeave(node.Annotations) {
			asked.leaving = append(asked.leaving, node.Name)
		}
		request, err := machineconfig.Asked(node.Annotations)
		switch {
		case err != nil:
			asked.garbled = true
			garbled[node.Name] = node.Annotations[machineconfig.DesiredDrainAnnotation]
			if before, known := p.garbled[node.Name]; !known || before != garbled[node.Name] {
				logr.FromContextOrDiscard(ctx).Error(err, "Request cannot be understood and is not answered", "node", node.Name)
				p.nodes.tellGarbled(ctx, node, p.applier.DryRun || p.once)
			}
		case request == nil:
		case request.Verb == machineconfig.VerbDrain:
			asked.drain = append(asked.drain, ask{job{node: node.Name, uid: node.UID, request: *request}, node})
		default:
			asked.uncordon = append(asked.uncordon, ask{job{node: node.Name, uid: node.UID, request: *request}, node})
		}
	}
	p.garbled = garbled
	return asked
}

// inline does something that takes no longer than a few requests. A drain of the node that is still being stopped goes first.
func (p *patcher) inline(ctx context.Context, j job, do func(context.Context, job) error) []patch.Result {
	if p.drains.stop(j.uid) {
		return []patch.Result{drainingResult}
	}
	if err := do(ctx, j); err != nil {
		return []patch.Result{failure(err)}
	}
	return nil
}

// drain has those nodes drained whose turn it is and that need it, and answers the others.
func (p *patcher) drain(ctx context.Context, f found, asked requests) []patch.Result {
	t, said := p.turn(ctx, f, asked)
	var wanted, needless []job
	why := map[string]string{}
	for _, j := range t.now {
		decision, err := p.required(ctx, f, t, j)
		switch {
		case err != nil:
			said = append(said, failure(err))
		case decision.Required:
			j.fits = p.byFit(f)
			wanted = append(wanted, j)
		default:
			needless = append(needless, j)
			why[j.node] = decision.Message
		}
	}
	for _, each := range p.drains.settle(ctx, wanted) {
		said = append(said, each.result())
	}
	for _, j := range needless {
		said = append(said, p.inline(ctx, j, func(ctx context.Context, j job) error { return p.nodes.acknowledge(ctx, j, why[j.node]) })...)
	}
	return said
}

// turn is who may be drained now.
type turn struct {
	now []job
	// leaving names the nodes that have leave.
	leaving []string
	// nodes are all of the cluster, as they are; as they are cached, with nothing but metadata, when none has to wait for its turn.
	nodes []corev1.Node
}

// turn finds out whose turn it is. A drain that has begun goes on: its node is away already, and waiting would not bring it back. That
// it has begun is seen from its try, or, by a process that has just started, from its cordon.
func (p *patcher) turn(ctx context.Context, f found, asked requests) (turn, []patch.Result) {
	running := p.drains.running() // before the nodes are read: what ends meanwhile shows on its node
	t := turn{nodes: f.inputs.Nodes}
	isRunning := func(a ask) bool { return running[a.uid] != "" }
	if slices.ContainsFunc(asked.drain, func(a ask) bool { return !isRunning(a) }) {
		var err error
		if t.nodes, err = p.nodes.all(ctx); err != nil {
			return t, []patch.Result{failure(err)}
		}
		// The cache may be behind our own answers.
		asked = p.asked(ctx, t.nodes)
	}
	t.leaving = slices.Compact(slices.Sorted(maps.Values(running)))
	t.leaving = append(t.leaving, asked.leaving...)
	jobs := map[string]job{}
	turn := machineconfig.Turn{Cluster: *f.inputs.Cluster, Pools: pointers(f.inputs.Pools), Nodes: pointers(t.nodes)}
	for _, a := range asked.drain {
		begun := isRunning(a)
		if !begun {
			var err error
			if begun, err = isOurCordon(a.on); err != nil {
				return t, []patch.Result{failure(err)}
			}
		}
		if begun {
			t.now, t.leaving = append(t.now, a.job), append(t.leaving, a.node)
			continue
		}
		jobs[a.node] = a.job
		turn.Asking = append(turn.Asking, a.node)
	}
	if len(turn.Asking) == 0 {
		return t, nil
	}
	turn.Leaving = t.leaving
	start, held, err := machineconfig.MayStart(turn)
	for _, name := range start {
		t.now, t.leaving = append(t.now, jobs[name]), append(t.leaving, name)
	}
	var said []patch.Result
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Some nodes wait because of a pool that cannot be understood")
		said = append(said, unclear(err))
	}
	for _, hold := range held {
		said = append(said, waiting(hold))
	}
	return t, said
}

// byFit tells whether room elsewhere decides who is drained.
func (p *patcher) byFit(f found) bool {
	return f.inputs.Policy == machineconfig.DrainWorkers && f.inputs.Cluster.ControlPlane.Mode == configv1.SingleReplicaTopologyMode
}

// required tells whether the node of the job has to be drained. Whether there is room elsewhere is asked once, before the first pod
// moves: what moves has not arrived yet.
func (p *patcher) required(ctx context.Context, f found, t turn, j job) (machineconfig.DrainDecision, error) {
	in := f.inputs
	in.Node, in.Nodes = j.node, t.nodes
	in.Leaving = slices.DeleteFunc(slices.Clone(t.leaving), func(name string) bool { return name == j.node })
	if p.byFit(f) {
		if p.drains.fits(j) {
			return machineconfig.DrainDecision{Required: true}, nil
		}
		var err error
		if in, err = p.nodes.room(ctx, in); err != nil {
			return machineconfig.DrainDecision{}, fmt.Errorf("whether node %s is drained: %w", j.node, err)
		}
	}
	decision, err := machineconfig.DrainRequired(in)
	if err != nil {
		return machineconfig.DrainDecision{}, fmt.Errorf("whether node %s is drained: %w", j.node, err)
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Decided whether to drain", "node", j.node, "required", decision.Required,
		"reason", decision.Reason, "message", decision.Message, "detail", decision.Detail)
	return decision, nil
}

// pointers are to the items of a list.
func pointers[T any](items []T) []*T {
	to := make([]*T, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}
