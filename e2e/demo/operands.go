// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/testcluster/operand"
	"github.com/solonode/sno/testcluster/scenario"
)

const (
	// restPoll is the time between two reads that must be equal.
	restPoll = time.Second
	// operandsTimeout limits the operators' first rollouts.
	operandsTimeout = operand.WaitTimeout
)

// finalReasons returns the final reasons of the console and auth controllers. The operators vendor the modules, so only
// downloads from a static manifest is left to the controllers.
func (j *job) finalReasons() map[framework.Module][]string {
	reasons := map[framework.Module][]string{framework.Console: {notNeeded}, framework.Auth: {asExpected}}
	if j.scenario.ControlPlaneTopology == configv1.SingleReplicaTopologyMode {
		reasons[framework.Console] = []string{asExpected}
	}
	for module := range reasons {
		if j.options.Operators.Has(module) { // it may write the fields, and may do so by the module
			reasons[module] = []string{asExpected, notNeeded, "FieldOwnedByOther"}
		}
	}
	if j.scenario.ControlPlaneTopology == configv1.ExternalTopologyMode {
		// One of its three objects needs nothing in any case, two because the control plane is external.
		reasons[framework.Auth] = []string{notNeeded, "ExternalControlPlane"}
	}
	return reasons
}

func (j *job) operandsExpectation() string {
	var parts []string
	for _, o := range j.scenario.Operands.List() {
		parts = append(parts, fmt.Sprintf("%s %d", o, o.Replicas))
	}
	where := "on the control plane"
	if j.scenario.Operands.Pool != scenario.PoolMaster {
		where = "on the workers"
	}
	return "Also expected, " + where + ": " + strings.Join(parts, ", ")
}

// operandsBefore prints the Deployments before the controllers run, once they are settled.
func (j *job) operandsBefore(ctx context.Context) error {
	j.heading("Before: console, downloads and the OAuth servers")
	state, err := j.operandsRolledOut(ctx)
	j.printf("%s", state)
	return err
}

// operandsRolledOut waits until the operators have made the Deployments and their state is the same twice in a row, and
// returns the state.
func (j *job) operandsRolledOut(ctx context.Context) (string, error) {
	last, now := "", ""
	err := wait.PollUntilContextTimeout(ctx, restPoll, operandsTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		last = now
		now, err = j.operands(ctx)
		return err == nil && now == last, client.IgnoreNotFound(err)
	})
	if err != nil {
		return "", fmt.Errorf("%w: the operators do not create their Deployments: %w", ErrVerificationFailed, err)
	}
	return now, nil
}

// operands describes the Deployments, a line for each.
func (j *job) operands(ctx context.Context) (string, error) {
	var lines []string
	for _, o := range j.scenario.Operands.List() {
		live, err := operand.Deployment(ctx, j.kube, o)
		if err != nil {
			return "", err
		}
		var pods corev1.PodList
		if err := j.kube.List(ctx, &pods, client.InNamespace(o.Namespace), client.MatchingLabels(live.Spec.Selector.MatchLabels)); err != nil {
			return "", fmt.Errorf("list the pods of %s: %w", o, err)
		}
		var nodes []string
		for i := range pods.Items {
			pod := &pods.Items[i]
			switch {
			case pod.Spec.NodeName != "":
				nodes = append(nodes, pod.Spec.NodeName)
			case pending([]corev1.Pod{*pod}) != nil:
				nodes = append(nodes, "Pending")
			}
		}
		slices.Sort(nodes)
		lines = append(lines, fmt.Sprintf("  %s: %d of %d pods are ready, wanted: %d; on %s", o, live.Status.ReadyReplicas, *live.Spec.Replicas, o.Replicas, strings.Join(nodes, " ")))
	}
	return strings.Join(lines, "\n"), nil
}

func (j *job) operandsDecided(ctx context.Context) error {
	reasons := j.finalReasons()
	for _, module := range []framework.Module{framework.Console, framework.Auth} {
		condition, err := j.env.WaitReason(ctx, module, operand.WaitTimeout, reasons[module]...)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
		}
		j.printf("  %s", condition)
	}
	return nil
}

// operandsAfter rolls out all Deployments, then drains a control-plane node. Each time they must return to their
// places, and those that can roll out without an outage must not have one.
func (j *job) operandsAfter(ctx context.Context) error {
	j.heading("After: console, downloads and the OAuth servers")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	want := j.scenario.Operands.List()
	watcher, err := operand.Watch(ctx, j.env.Cluster, want)
	if err != nil {
		return err
	}
	settled := func() error {
		if err := operand.WaitSettled(ctx, j.kube, want); err != nil {
			return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
		}
		return nil
	}
	if err := settled(); err != nil {
		return err
	}
	if err := watcher.Mark(ctx, j.kube); err != nil {
		return err
	}
	started := time.Now()
	if err := j.env.Roll(ctx, want, "rollout"); err != nil {
		return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
	}
	rolled := time.Since(started)
	if err := errors.Join(watcher.Available(), watcher.TwoWriters()); err != nil {
		return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
	}
	node := j.scenario.Nodes()[0].Name
	if err := operand.Drain(ctx, j.env.Cluster, node); err != nil {
		return fmt.Errorf("%w: %w", ErrVerificationFailed, err)
	}
	if err := operand.Uncordon(ctx, j.env.Cluster, node); err != nil {
		return err
	}
	if err := settled(); err != nil {
		return err
	}
	state, err := j.operands(ctx)
	if err != nil {
		return err
	}
	j.printf("%s\n  All rolled out in %.1f s, those that can without a time without a pod, and came back after a drain of %s", state, rolled.Seconds(), node)
	return nil
}
