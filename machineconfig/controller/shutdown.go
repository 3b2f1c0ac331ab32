// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// shutdown carries out the decision about the graceful shutdown. It reads pods only if necessary.
func (p *patcher) shutdown(ctx context.Context, f observed) *patch.Result {
	in := f.inputs
	decided := decision.Decide(in)
	if decided.Result != nil && decided.Result.Reason == decision.ReasonWaitingForNodes {
		in.Pods = []corev1.Pod{}
		for _, name := range machineconfig.ShutdownNodes(in.Nodes) {
			pods := &corev1.PodList{}
			if err := p.Live.List(ctx, pods, client.MatchingFields{"spec.nodeName": name}); err != nil {
				return shutdownMessages.Failed(machineconfig.Name, fmt.Errorf("listing the pods of node %s: %w", name, err))
			}
			in.Pods = append(in.Pods, pods.Items...)
		}
		decided = decision.Decide(in)
	}
	result := p.settle(decided)
	if result == nil {
		result = p.write(ctx, decided.MachineConfig, f.machineConfig)
	}
	if result == nil {
		result = p.write(ctx, decided.KubeletConfig, f.kubeletConfig)
	}
	if result != nil {
		return result
	}
	observed := decision.Observe(in, decided)
	if in.Pods != nil && observed.After == 0 {
		observed.After = decision.ShutdownDebounce // pods are not watched
	}
	return &observed
}

// settle returns nil if a decision may be carried out. One that restarts a node must have been stable for
// ShutdownDebounce.
func (p *patcher) settle(decided decision.Decision) *patch.Result {
	if !decided.Restarts || p.Once {
		p.settling = decision.Decision{}
		return nil
	}
	decided.Result = nil
	now := p.clock.Now()
	if !reflect.DeepEqual(p.settling, decided) {
		p.settling, p.settlingSince = decided, now
	}
	left := decision.ShutdownDebounce - now.Sub(p.settlingSince)
	if left <= 0 {
		return nil
	}
	return &patch.Result{State: patch.Progressing, Reason: decision.ReasonSettling, After: left, Message: "A change of the " +
		"graceful shutdown restarts the node, so it is written when it has been stable for " + decision.ShutdownDebounce.String()}
}

// write deletes, applies or creates an object. It returns nil if there is nothing to report.
func (p *patcher) write(
	ctx context.Context, step patch.Step, live *unstructured.Unstructured,
) *patch.Result {
	var outcome apply.Outcome
	var err error
	switch {
	case step.Delete:
		as := client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())}
		err = client.IgnoreNotFound(p.writer.Delete(ctx, live.DeepCopy(), as))
		if staleErr := apply.StaleOrGone(err); staleErr != nil {
			return shutdownMessages.Failed(machineconfig.Name, staleErr)
		}
		outcome = p.written(ctx, apply.Released, apply.WouldRelease, err)
	case step.Intent == nil:
		return nil
	case !step.Create:
		outcome, err = p.applier.Apply(ctx, live, step.Intent)
	default:
		err = p.create(ctx, step.Intent)
		outcome = p.written(ctx, apply.Applied, apply.WouldApply, err)
		if conflicts := apply.ConflictsOf(err); len(conflicts) > 0 {
			return ptr.To(patch.OwnedByOther(conflicts[0].Field, conflicts[0].Manager))
		}
	}
	return shutdownMessages.Result(ctx, machineconfig.Name, outcome, err)
}

func (p *patcher) create(ctx context.Context, intent runtime.ApplyConfiguration) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(intent) // the client's scheme lacks the kinds
	if err != nil {
		return fmt.Errorf("encoding an intent: %w", err)
	}
	u := &unstructured.Unstructured{Object: body}
	return p.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(decision.FieldOwner))
}

// written records a write without the Applier, and returns its outcome.
func (p *patcher) written(ctx context.Context, kind, dry apply.Kind, err error) apply.Outcome {
	outcome := apply.Outcome{Kind: kind}
	switch {
	case err != nil:
		kind = apply.Failed
	case p.Options.DryRun:
		kind, outcome.Kind = dry, apply.WouldApply
	default:
		logr.FromContextOrDiscard(ctx).Info("Graceful shutdown written", "outcome", string(kind))
	}
	p.applier.Recorder.RecordApply(machineconfig.Name, kind)
	return outcome
}
