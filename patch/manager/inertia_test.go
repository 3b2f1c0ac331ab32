package manager

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/status"
)

// shown is a sink that keeps the reasons of what it is to show.
type shown chan string

func (s shown) Show(_ context.Context, _ *unstructured.Unstructured, conditions []operatorv1.OperatorCondition) (time.Duration, error) {
	for _, c := range conditions {
		if c.Type == patch.InForceCondition("Sample") {
			s <- c.Reason
		}
	}
	return 0, nil
}

// What is otherwise than it was told is told when it has been so for a while, and then all of it; failures, and what is told first, at once.
func TestInertia(t *testing.T) {
	type look struct {
		state  patch.State
		reason string
		err    error
		// after is when it is looked, since the look before.
		after time.Duration
		// told is what is told at this look; again is when it is to be looked again.
		told  string
		again time.Duration
	}
	const short, long = inertia / 5, 2 * inertia
	failure := errors.New("refused")
	for name, looks := range map[string][]look{
		"over before it is told": {
			{state: patch.Progressing, reason: "TakingOver", again: inertia},
			{after: short, state: patch.Progressing, reason: "RollingOut", again: inertia - short},
			{after: short, state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
		},
		"stands": {
			{state: patch.Progressing, reason: "TakingOver", again: inertia},
			{after: inertia, state: patch.Progressing, reason: "TakingOver", told: "TakingOver"},
			{after: short, state: patch.Progressing, reason: "RollingOut", told: "RollingOut"},
			{after: short, state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
		},
		"on its way all the time, each time with another reason": {
			{state: patch.Progressing, reason: "One", again: inertia},
			{after: inertia - short, state: patch.Progressing, reason: "Two", again: short},
			{after: short, state: patch.Progressing, reason: "Three", told: "Three"},
		},
		"begins anew": {
			{state: patch.Progressing, reason: "TakingOver", again: inertia},
			{after: short, state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
			{after: long, state: patch.Progressing, reason: "TakingOver", again: inertia},
		},
		"blocked for a moment": {
			{state: patch.Blocked, reason: "FieldOwnedByOther", again: inertia},
			{after: short, state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
		},
		"first on its way, then blocked, then waiting": {
			{state: patch.Progressing, reason: "TakingOver", again: inertia},
			{after: short, state: patch.Blocked, reason: "FieldOwnedByOther", again: inertia - short},
			{after: inertia - short, state: patch.Waiting, reason: "WaitingForObject", told: "WaitingForObject"},
		},
		"ends otherwise": {
			{state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
			{after: long, state: patch.Progressing, reason: "GivingBack", again: inertia},
			{after: short, state: patch.NotNeeded, reason: "NotNeeded", again: inertia - short},
			{after: inertia - short, state: patch.NotNeeded, reason: "NotNeeded", told: "NotNeeded"},
			{after: short, state: patch.InForce, reason: "AsExpected", again: inertia},
		},
		"ends otherwise after it was told to be on its way": {
			{state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
			{after: long, state: patch.Progressing, reason: "GivingBack", again: inertia},
			{after: long, state: patch.Progressing, reason: "GivingBack", told: "GivingBack"},
			{after: short, state: patch.NotNeeded, reason: "NotNeeded", told: "NotNeeded"},
		},
		"there and back": {
			{state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
			{after: long, state: patch.NotNeeded, reason: "NotNeeded", again: inertia},
			{after: short, state: patch.InForce, reason: "AsExpected", told: "AsExpected"}, // once more what was told
			{after: long, state: patch.NotNeeded, reason: "NotNeeded", again: inertia},
		},
		"a person has enough of it": {
			{state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
			{after: long, state: patch.OptedOut, reason: "OptedOut", told: "OptedOut"},
			{after: long, state: patch.InForce, reason: "AsExpected", again: inertia},
		},
		"fails in between": {
			{state: patch.InForce, reason: "AsExpected", told: "AsExpected"},
			{after: long, state: patch.NotNeeded, reason: "NotNeeded", again: inertia},
			{after: short, state: patch.Failed, reason: "Invalid", told: "Invalid", again: status.DefaultInertia},
			{after: short, state: patch.NotNeeded, reason: "NotNeeded", again: inertia},
		},
		"refused":    {{state: patch.Progressing, reason: "Refused", err: failure, told: "Refused"}},
		"failed":     {{state: patch.Failed, reason: "Invalid", told: "Invalid", again: status.DefaultInertia}},
		"reverted":   {{state: patch.Reverted, reason: "PatchReverted", told: "PatchReverted", again: status.DefaultInertia}},
		"opted out":  {{state: patch.OptedOut, reason: "OptedOut", told: "OptedOut"}},
		"not needed": {{state: patch.NotNeeded, reason: "NotNeeded", told: "NotNeeded"}},
		"a dry run":  {{state: patch.WouldChange, reason: "DryRun", told: "DryRun"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reasons := make(shown, 1)
				var next look
				c := &Controller{Reporter: &status.Reporter{Module: "sample", Prefix: "Sample", Sink: reasons}}
				c.Look = func(context.Context) (*unstructured.Unstructured, patch.Result, error) {
					return nil, patch.Result{State: next.state, Reason: next.reason, Err: next.err}, nil
				}
				for i, look := range looks {
					next = look
					<-time.After(look.after)
					got, err := c.Reconcile(t.Context(), reconcile.Request{})
					if !errors.Is(err, look.err) {
						t.Fatalf("look %d: %v", i+1, err)
					}
					told := ""
					select {
					case told = <-reasons:
					default:
					}
					if told != look.told || got.RequeueAfter != look.again {
						t.Errorf("look %d tells %q and looks again after %v, want %q and %v", i+1, told, got.RequeueAfter, look.told, look.again)
					}
				}
			})
		})
	}
}

// A module that wants to look earlier does.
func TestInertiaDelaysNothing(t *testing.T) {
	c := &Controller{Look: func(context.Context) (*unstructured.Unstructured, patch.Result, error) {
		return nil, patch.Result{State: patch.Progressing, Reason: "TakingOver", After: time.Millisecond}, nil
	}}
	if got, err := c.Reconcile(t.Context(), reconcile.Request{}); err != nil || got.RequeueAfter != time.Millisecond {
		t.Errorf("it looks again after %v, %v", got.RequeueAfter, err)
	}
}

// A change at rest is looked at at once. Those that come with it or after it are looked at together, when it is time.
func TestBreather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Controller{Reporter: &status.Reporter{Module: "sample", Prefix: "Sample", Sink: status.None{}}}
		c.Look = func(context.Context) (*unstructured.Unstructured, patch.Result, error) {
			<-time.After(breather / 5)
			return nil, patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected}, nil
		}
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		handles := enqueues[*unstructured.Unstructured](c, reconcile.Request{})
		changes := map[string]func(){
			"made":    func() { handles.Create(t.Context(), event.TypedCreateEvent[*unstructured.Unstructured]{}, queue) },
			"changed": func() { handles.Update(t.Context(), event.TypedUpdateEvent[*unstructured.Unstructured]{}, queue) },
			"deleted": func() { handles.Delete(t.Context(), event.TypedDeleteEvent[*unstructured.Unstructured]{}, queue) },
		}
		// look looks once there is something in the queue, and returns how long that took.
		look := func() time.Duration {
			t.Helper()
			before := time.Now()
			request, _ := queue.Get()
			waited := time.Since(before)
			if _, err := c.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			queue.Done(request)
			return waited
		}
		for name, change := range changes {
			change()
			if waited := look(); waited != 0 {
				t.Errorf("%s: the first is looked at after %v", name, waited)
			}
			for _, change := range changes {
				change()
			}
			if waited := look(); waited != breather*4/5 {
				t.Errorf("%s: the next ones are looked at after %v, want %v", name, waited, breather*4/5)
			}
			<-time.After(breather)
			if left := queue.Len(); left != 0 {
				t.Errorf("%s: %d looks are left", name, left)
			}
		}
	})
}
