package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// shutdown brings the decision about the graceful shutdown onto the cluster, and says how it went. It is for clusters with a stock
// machine-config operator: nobody else gives a kubelet what its objects say. The pods that it is sized by are read only when the decision
// asks for them.
func (p *patcher) shutdown(ctx context.Context, f found) patch.Result {
	in := f.inputs
	decision := machineconfig.Decide(in)
	if decision.Result != nil && decision.Result.Reason == machineconfig.ReasonWaitingForNodes {
		var err error
		if in.Pods, err = p.controlPlanePods(ctx, in.Nodes); err != nil {
			return *shutdownWords.Failed(machineconfig.Name, err)
		}
		decision = machineconfig.Decide(in)
	}
	if result := p.settle(decision); result != nil {
		return *result
	}
	var intents [2]runtime.ApplyConfiguration
	if decision.MachineConfig.Intent != nil {
		intents[0] = decision.MachineConfig.Intent
	}
	if decision.KubeletConfig.Intent != nil {
		intents[1] = decision.KubeletConfig.Intent
	}
	for i, of := range []struct {
		live   *unstructured.Unstructured
		remove bool
	}{{f.machineConfig, decision.MachineConfig.Delete}, {f.kubeletConfig, decision.KubeletConfig.Delete}} {
		result, err := p.carryOut(ctx, of.live, intents[i], of.remove)
		if err != nil {
			result = shutdownWords.Failed(machineconfig.Name, err)
		}
		if result != nil {
			// One without the other is no graceful shutdown, and a rendered config that nobody wants.
			return *result
		}
	}
	result := machineconfig.Observe(in, decision)
	if in.Pods != nil && result.After == 0 {
		result.After = machineconfig.ShutdownSettle // no watch tells of pods
	}
	return result
}

// settling is a decision that restarts a node, in text form, and when it was made first.
type settling struct {
	decision string
	since    time.Time
}

// settle keeps a decision that restarts a node until it has been the same for a while; nil when it may be carried out.
func (p *patcher) settle(decision machineconfig.Decision) *patch.Result {
	if !decision.Restarts || p.once {
		p.settling = settling{}
		return nil
	}
	text, err := json.Marshal([]any{decision.MachineConfig, decision.KubeletConfig})
	if err != nil {
		return shutdownWords.Failed(machineconfig.Name, err)
	}
	if p.settling.decision != string(text) {
		p.settling = settling{string(text), p.clock.Now()}
	}
	left := machineconfig.ShutdownSettle - p.clock.Since(p.settling.since)
	if left <= 0 {
		return nil
	}
	return &patch.Result{State: patch.Progressing, Reason: machineconfig.ReasonSettling, After: min(left, settleGlance), Message: "A change of the " +
		"graceful shutdown restarts the node, so it is made when it has been wanted for " + machineconfig.ShutdownSettle.String()}
}

// settleGlance is how often is looked whether the decision is still the same.
const settleGlance = time.Minute

// controlPlanePods reads the pods of the control-plane nodes.
func (p *patcher) controlPlanePods(ctx context.Context, all []corev1.Node) ([]corev1.Pod, error) {
	pods := []corev1.Pod{}
	for i := range all {
		_, master := all[i].Labels[machineconfig.MasterRole]
		_, controlPlane := all[i].Labels[machineconfig.ControlPlaneRole]
		if !master && !controlPlane && len(all) > 1 {
			continue
		}
		on, err := podsOf(ctx, p.live, all[i].Name)
		if err != nil {
			return nil, err
		}
		pods = append(pods, on...)
	}
	return pods, nil
}

// carryOut applies or deletes one object; nil when there is nothing to say beside the decision.
func (p *patcher) carryOut(ctx context.Context, live *unstructured.Unstructured, intent runtime.ApplyConfiguration, remove bool) (*patch.Result, error) {
	switch {
	case remove && live != nil:
		return p.remove(ctx, live)
	case intent != nil && live != nil:
		outcome, err := p.applier.Apply(ctx, live, intent)
		return shutdownWords.Result(ctx, machineconfig.Name, outcome, err), nil
	case intent != nil:
		return p.create(ctx, intent)
	}
	return nil, nil
}

// create makes an object of ours that is not there.
func (p *patcher) create(ctx context.Context, intent runtime.ApplyConfiguration) (*patch.Result, error) {
	opts := []client.ApplyOption{client.FieldOwner(machineconfig.FieldOwner)}
	if p.applier.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(intent) // the client's scheme does not know the kinds
	if err != nil {
		return nil, fmt.Errorf("reading an intent: %w", err)
	}
	made := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: body})
	if err := p.applier.Client.Apply(ctx, made, opts...); err != nil {
		p.nodes.recorder.RecordApply(machineconfig.Name, apply.Refused)
		if conflicts := apply.ConflictsOf(err); len(conflicts) > 0 {
			return ptr.To(patch.OwnedByOther(conflicts[0].Field, conflicts[0].Manager)), nil
		}
		return nil, fmt.Errorf("making an object of the graceful shutdown: %w", err)
	}
	return p.written(ctx, apply.Applied, apply.WouldApply), nil
}

// remove deletes an object of ours, the very one that was decided on.
func (p *patcher) remove(ctx context.Context, live *unstructured.Unstructured) (*patch.Result, error) {
	opts := []client.DeleteOption{client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())}}
	if p.applier.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	err := p.applier.Client.Delete(ctx, live.DeepCopy(), opts...)
	switch {
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("%w: %w", apply.ErrStale, err)
	case client.IgnoreNotFound(err) != nil:
		p.nodes.recorder.RecordApply(machineconfig.Name, apply.Refused)
		return nil, fmt.Errorf("deleting an object of the graceful shutdown: %w", err)
	}
	return p.written(ctx, apply.Released, apply.WouldRelease), nil
}

func (p *patcher) written(ctx context.Context, kind, dry apply.Kind) *patch.Result {
	if p.applier.DryRun {
		p.nodes.recorder.RecordApply(machineconfig.Name, dry)
		return &patch.Result{State: patch.WouldChange, Reason: machineconfig.ReasonDryRun, Message: "Dry run: " + shutdownWords.WouldApply}
	}
	p.nodes.recorder.RecordApply(machineconfig.Name, kind)
	logr.FromContextOrDiscard(ctx).Info("Graceful shutdown written", "outcome", string(kind))
	return nil
}
