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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	rows, err := j.operandsRolledOut(ctx)
	if err != nil {
		return err
	}
	j.table([]string{"DEPLOYMENT", "REPLICAS", "READY", "NODES", ""}, rows)
	return nil
}

// operandsRolledOut waits until the operators have made the Deployments and their rows are the same twice in a row, and
// returns the rows.
func (j *job) operandsRolledOut(ctx context.Context) ([][]string, error) {
	var last, now [][]string
	err := wait.PollUntilContextTimeout(ctx, restPoll, operandsTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		last = now
		now, err = j.operandRows(ctx)
		made := !slices.ContainsFunc(now, func(row []string) bool { return row[1] == "-" })
		return err == nil && made && slices.EqualFunc(last, now, slices.Equal), err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the operators do not create their Deployments: %w", ErrVerificationFailed, err)
	}
	return now, nil
}

func (j *job) operandRows(ctx context.Context) ([][]string, error) {
	var rows [][]string
	for _, o := range j.scenario.Operands.List() {
		var live appsv1.Deployment
		err := j.kube.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, &live)
		if apierrors.IsNotFound(err) {
			rows = append(rows, []string{o.String(), "-", "-", "-", ""})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read Deployment %s: %w", o, err)
		}
		var pods corev1.PodList
		if err := j.kube.List(ctx, &pods, client.InNamespace(o.Namespace), client.MatchingLabels(live.Spec.Selector.MatchLabels)); err != nil {
			return nil, fmt.Errorf("list the pods of %s: %w", o, err)
		}
		mark := ""
		var nodes []string
		for i := range pods.Items {
			pod := &pods.Items[i]
			switch {
			case pod.Spec.NodeName != "":
				nodes = append(nodes, pod.Spec.NodeName)
			case pending([]corev1.Pod{*pod}) != nil:
				nodes, mark = append(nodes, "Pending"), j.paint(red, "a pod finds no node")
			}
		}
		slices.Sort(nodes)
		if *live.Spec.Replicas != o.Replicas && mark == "" {
			mark = j.paint(red, fmt.Sprintf("wanted: %d", o.Replicas))
		}
		rows = append(rows, []string{
			o.String(), fmt.Sprint(*live.Spec.Replicas), fmt.Sprint(live.Status.ReadyReplicas), strings.Join(nodes, " "), mark,
		})
	}
	return rows, nil
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
	rows, err := j.operandRows(ctx)
	if err != nil {
		return err
	}
	for i, o := range want {
		note := "ok, never without a pod while it rolled out"
		if o.MinAvailable == 0 {
			note = "ok, the old pod ended first: one writer on a node"
		}
		rows[i][4] = j.paint(green, note)
	}
	j.table([]string{"DEPLOYMENT", "REPLICAS", "READY", "NODES", ""}, rows)
	j.printf("  %s", j.paint(dim, fmt.Sprintf("All rolled out in %.1f s, and came back after a drain of %s", rolled.Seconds(), node)))
	return nil
}
