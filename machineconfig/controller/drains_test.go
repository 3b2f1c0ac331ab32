package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch/patchtest"
)

var errTry = errors.New("the try failed")

// trial lets a test decide how each try ends.
type trial struct {
	*drains
	began chan job
	// ended tells that a try was stopped before the test ended it.
	ended chan job
	// end has one try end.
	end chan error
	// tries counts all that began.
	tries atomic.Int64
}

func newTrial(t *testing.T, pause time.Duration) *trial {
	r := &trial{began: make(chan job), ended: make(chan job), end: make(chan error)}
	r.drains = newDrains(func(ctx context.Context, j job) error {
		r.tries.Add(1)
		r.began <- j
		select {
		case <-ctx.Done():
			r.ended <- j
			return ctx.Err()
		case err := <-r.end:
			return err
		}
	}, time.Minute)
	r.pause = pause
	return r
}

// next waits for what a channel gives, but not for ever.
func next[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing comes")
	}
	return value
}

func jobFor(uid, config string) job {
	return job{node: "node-" + uid, uid: types.UID(uid), request: machineconfig.Request{Verb: machineconfig.VerbDrain, Config: config}}
}

func (r *trial) stands(t *testing.T, stand []background, failures int, running bool) {
	t.Helper()
	if len(stand) != 1 || stand[0].failures != failures || (stand[0].cancel != nil) != running {
		t.Fatalf("%+v; want one with %d failures, running %v", stand, failures, running)
	}
}

// What is wanted runs, once for a node, until it succeeds.
func TestDrainsUntilItSucceeds(t *testing.T) {
	ctx := t.Context()
	r := newTrial(t, time.Millisecond)
	a := jobFor("a", "one")
	for range 3 {
		r.stands(t, r.settle(ctx, []job{a}), 0, true)
	}
	if got := next(t, r.began); got != a {
		t.Fatalf("%+v began", got)
	}
	if got := r.running(); len(got) != 1 || got["a"] != "node-a" {
		t.Errorf("%v run", got)
	}
	r.end <- errTry
	next(t, r.wake)
	patchtest.Eventually(t, "the pause is over", func() error {
		if stand := r.settle(ctx, []job{a}); stand[0].cancel == nil {
			return errors.New("it does not run")
		}
		return nil
	})
	next(t, r.began)
	stand := r.settle(ctx, []job{a})
	r.stands(t, stand, 1, true)
	if !errors.Is(stand[0].err, errTry) {
		t.Errorf("the last error is %v", stand[0].err)
	}
	r.end <- nil
	next(t, r.wake)
	if len(r.all) != 0 || len(r.running()) != 0 {
		t.Errorf("%v is left", r.all)
	}
	if n := r.tries.Load(); n != 2 {
		t.Errorf("%d tries, want 2", n)
	}
}

// A drain for another request does not begin before the one that runs has ended: what it still evicts would come after.
func TestDrainsOneAfterTheOther(t *testing.T) {
	ctx := t.Context()
	r := newTrial(t, time.Millisecond)
	first, second := jobFor("a", "one"), jobFor("a", "two")
	r.settle(ctx, []job{first})
	next(t, r.began)
	for range 3 {
		r.settle(ctx, []job{second})
		if running := r.running(); len(running) != 1 {
			t.Fatalf("%v run", running)
		}
	}
	if got := next(t, r.ended); got != first {
		t.Errorf("%+v was stopped", got)
	}
	next(t, r.wake)
	r.stands(t, r.settle(ctx, []job{second}), 0, true)
	if got := next(t, r.began); got != second {
		t.Errorf("%+v began", got)
	}
	if r.fits(second) || r.stop("unknown") {
		t.Error("what never was")
	}
	// Nobody asks any more.
	r.settle(ctx, nil)
	next(t, r.ended)
	next(t, r.wake)
	r.settle(ctx, nil)
	if len(r.all) != 0 {
		t.Errorf("%v is left", r.all)
	}
}

func TestDrainsStop(t *testing.T) {
	ctx := t.Context()
	r := newTrial(t, time.Hour)
	a := jobFor("a", "one")
	a.fits = true
	r.settle(ctx, []job{a})
	next(t, r.began)
	plain := a
	plain.fits = false
	if !r.fits(plain) {
		t.Error("it is forgotten why it runs")
	}
	for range 2 {
		if !r.stop("a") {
			t.Error("a try is under way until it has ended")
		}
	}
	next(t, r.ended)
	next(t, r.wake)
	if r.stop("a") {
		t.Error("it has ended")
	}
	// Between two tries there is nothing to wait for.
	r.settle(ctx, []job{a})
	next(t, r.began)
	r.end <- errTry
	next(t, r.wake)
	r.stands(t, r.settle(ctx, []job{a}), 1, false)
	if r.stop("a") || len(r.all) != 0 {
		t.Error("it is not forgotten")
	}
}

// When the process no longer leads, every try ends, and no other begins.
func TestDrainsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newTrial(t, time.Millisecond)
	over := make(chan error)
	go func() { over <- r.Start(ctx) }()
	r.settle(ctx, []job{jobFor("a", "one"), jobFor("b", "one")})
	next(t, r.began)
	next(t, r.began)
	cancel()
	next(t, r.ended)
	select {
	case <-over:
		t.Fatal("it ended before its tries")
	default:
	}
	next(t, r.ended)
	if err := next(t, over); err != nil {
		t.Error(err)
	}
	r.settle(ctx, []job{jobFor("c", "one")})
	if len(r.running()) != 0 {
		t.Error("one began after the end")
	}
}

func TestPauseAfter(t *testing.T) {
	for failures, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		if got := pauseAfter(failures, firstPause); got != want {
			t.Errorf("after %d others: %s, want %s", failures, got, want)
		}
	}
	if got := pauseAfter(1_000_000, time.Second); got != mostPause {
		t.Errorf("after a million others: %s", got)
	}
	if got := newDrains(nil, 2*time.Second).pause; got != 2*time.Second {
		t.Errorf("with a short timeout: %s", got)
	}
}
