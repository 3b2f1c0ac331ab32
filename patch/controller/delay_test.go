// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/status"
	"github.com/solonode/sno/topology"
)

// reasonSink sends the reasons.
type reasonSink chan string

func (s reasonSink) Publish(_ context.Context, _ *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	for _, c := range conditions {
		if c.Type == patch.InForceCondition("Sample") {
			s <- c.Reason
		}
	}
	return 0, nil
}

// A new state is reported after reportDelay; failures, opt-outs, dry runs and the first final state at once.
func TestReportDelay(t *testing.T) {
	type step struct {
		state  patch.State
		reason string
		err    error
		after  time.Duration // the step before
		// reported is the reason that is reported, "" for none; again is when to reconcile again.
		reported string
		again    time.Duration
	}
	const short, long = reportDelay / 5, 2 * reportDelay
	failure := errors.New("refused")
	for name, steps := range map[string][]step{
		"a short state": {
			{state: patch.Progressing, reason: "TakingOver", again: reportDelay},
			{after: short, state: patch.Progressing, reason: "RollingOut", again: reportDelay - short},
			{after: short, state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
		},
		"a stable state": {
			{state: patch.Progressing, reason: "TakingOver", again: reportDelay},
			{after: reportDelay, state: patch.Progressing, reason: "TakingOver", reported: "TakingOver"},
			{after: short, state: patch.Progressing, reason: "RollingOut", reported: "RollingOut"},
			{after: short, state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
		},
		"in progress with changing reasons": {
			{state: patch.Progressing, reason: "One", again: reportDelay},
			{after: reportDelay - short, state: patch.Progressing, reason: "Two", again: short},
			{after: short, state: patch.Progressing, reason: "Three", reported: "Three"},
		},
		"in progress again": {
			{state: patch.Progressing, reason: "TakingOver", again: reportDelay},
			{after: short, state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
			{after: long, state: patch.Progressing, reason: "TakingOver", again: reportDelay},
		},
		"blocked for a short time": {
			{state: patch.Blocked, reason: "FieldOwnedByOther", again: reportDelay},
			{after: short, state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
		},
		"in progress, then blocked, then waiting": {
			{state: patch.Progressing, reason: "TakingOver", again: reportDelay},
			{after: short, state: patch.Blocked, reason: "FieldOwnedByOther", again: reportDelay - short},
			{after: reportDelay - short, state: patch.Waiting, reason: "WaitingForObject", reported: "WaitingForObject"},
		},
		"another final state": {
			{state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
			{after: long, state: patch.Progressing, reason: "Releasing", again: reportDelay},
			{after: short, state: patch.NotNeeded, reason: "NotNeeded", again: reportDelay - short},
			{after: reportDelay - short, state: patch.NotNeeded, reason: "NotNeeded", reported: "NotNeeded"},
			{after: short, state: patch.InForce, reason: "AsExpected", again: reportDelay},
		},
		"another final state after one in progress was reported": {
			{state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
			{after: long, state: patch.Progressing, reason: "Releasing", again: reportDelay},
			{after: long, state: patch.Progressing, reason: "Releasing", reported: "Releasing"},
			{after: short, state: patch.NotNeeded, reason: "NotNeeded", reported: "NotNeeded"},
		},
		"a final state that is reverted": {
			{state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
			{after: long, state: patch.NotNeeded, reason: "NotNeeded", again: reportDelay},
			{after: short, state: patch.InForce, reason: "AsExpected", reported: "AsExpected"}, // the reported state again
			{after: long, state: patch.NotNeeded, reason: "NotNeeded", again: reportDelay},
		},
		"an opt-out": {
			{state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
			{after: long, state: patch.OptedOut, reason: "OptedOut", reported: "OptedOut"},
			{after: long, state: patch.InForce, reason: "AsExpected", again: reportDelay},
		},
		"fails in between": {
			{state: patch.InForce, reason: "AsExpected", reported: "AsExpected"},
			{after: long, state: patch.NotNeeded, reason: "NotNeeded", again: reportDelay},
			{after: short, state: patch.Failed, reason: "Invalid", reported: "Invalid", again: status.FailingAfter},
			{after: short, state: patch.NotNeeded, reason: "NotNeeded", again: reportDelay},
		},
		"refused":    {{state: patch.Progressing, reason: "Refused", err: failure, reported: "Refused"}},
		"failed":     {{state: patch.Failed, reason: "Invalid", reported: "Invalid", again: status.FailingAfter}},
		"reverted":   {{state: patch.Reverted, reason: "PatchReverted", reported: "PatchReverted", again: status.FailingAfter}},
		"opted out":  {{state: patch.OptedOut, reason: "OptedOut", reported: "OptedOut"}},
		"not needed": {{state: patch.NotNeeded, reason: "NotNeeded", reported: "NotNeeded"}},
		"a dry run":  {{state: patch.WouldChange, reason: "DryRun", reported: "DryRun"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reasons := make(reasonSink, 1)
				var next step
				c := &Controller{Cluster: unknownCluster, Reporter: &status.Reporter{Module: "sample", Prefix: "Sample", Sink: reasons}}
				c.ReconcileFunc = func(context.Context, *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
					return nil, patch.Result{State: next.state, Reason: next.reason, Err: next.err}, nil
				}
				for i, step := range steps {
					next = step
					<-time.After(step.after)
					got, err := c.Reconcile(t.Context(), reconcile.Request{})
					if !errors.Is(err, step.err) {
						t.Fatalf("step %d: %v", i+1, err)
					}
					reported := ""
					select {
					case reported = <-reasons:
					default:
					}
					if reported != step.reported || got.RequeueAfter != step.again {
						t.Errorf("step %d reports %q and requeues after %v, want %q and %v", i+1, reported, got.RequeueAfter, step.reported, step.again)
					}
				}
			})
		})
	}
}

// A shorter requeue time of the module has precedence.
func TestReportDelayDelaysNothing(t *testing.T) {
	c := &Controller{Cluster: unknownCluster, ReconcileFunc: func(context.Context, *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
		return nil, patch.Result{State: patch.Progressing, Reason: "TakingOver", After: time.Millisecond}, nil
	}}
	if got, err := c.Reconcile(t.Context(), reconcile.Request{}); err != nil || got.RequeueAfter != time.Millisecond {
		t.Errorf("it requeues after %v, %v", got.RequeueAfter, err)
	}
}

func unknownCluster(context.Context) (*topology.Cluster, error) { return nil, nil }
