package apply_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/solonode/sno/patch/apply"
)

// revertBench is a patch in force, and a clock that stands still.
func revertBench(t *testing.T) (*bench, *apply.Applier, *clocktesting.FakePassiveClock) {
	t.Helper()
	b := newBench(t, stock, map[string]any{"domain": "apps.example.org"})
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	a := b.applier(func(a *apply.Applier) { a.Clock = clock })
	b.apply(a, pinned(1), apply.Applied, 1)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	return b, a, clock
}

const takeOff = `{"spec":{"nodePlacement":null,"replicas":null}}`

// TestRevertIsNotFought shows R-SNO-9. Somebody takes the patch off: nothing is sent until a pause is over, then the
// patch is tried once; the pause doubles up to a bound.
func TestRevertIsNotFought(t *testing.T) {
	b, a, clock := revertBench(t)
	pauses := []time.Duration{5, 10, 20, 40, 60, 60}
	for i, minutes := range pauses {
		pause := minutes * time.Minute
		b.merge("stock-operator", fmt.Sprintf(`{"metadata":{"labels":{"turn-%d":""}},"spec":{"nodePlacement":null,"replicas":null}}`, i))
		b.unchanged(func() {
			outcome := b.apply(a, pinned(1), apply.Withheld, 0)
			if outcome.RetryAfter != pause {
				t.Errorf("retry after %s, want %s", outcome.RetryAfter, pause)
			}
			if diff := cmp.Diff([]string{"stock-operator"}, outcome.Reverters); diff != "" {
				t.Errorf("reverters (-want +got):\n%s", diff)
			}
			clock.SetTime(clock.Now().Add(pause - time.Second))
			if outcome := b.apply(a, pinned(1), apply.Withheld, 0); outcome.RetryAfter != time.Second {
				t.Errorf("retry after %s, want one second", outcome.RetryAfter)
			}
		})
		clock.SetTime(clock.Now().Add(time.Second))
		b.apply(a, pinned(1), apply.Applied, 1)
		b.apply(a, pinned(1), apply.Unchanged, 0)
	}
}

// Who only removes leaves no trace in the object. Then nobody is named, least of all whoever wrote it before.
func TestRevertByRemovalNamesNobody(t *testing.T) {
	b, a, _ := revertBench(t)
	b.merge("stock-operator", takeOff)
	if outcome := b.apply(a, pinned(1), apply.Withheld, 0); len(outcome.Reverters) > 0 {
		t.Errorf("reverters: %v, want none", outcome.Reverters)
	}
}

// A field that is written back by a manager that may be overridden is a revert as well, also when the annotation goes with it.
func TestRevertByOverridableManager(t *testing.T) {
	for name, annotations := range map[string]string{"the value": "", "the whole object": `"metadata":{"annotations":{"` + annotation + `":null}},`} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, stock, replicas(2))
			clock := clocktesting.NewFakePassiveClock(time.Now())
			a := b.applier(func(a *apply.Applier) { a.Clock = clock })
			b.apply(a, replicas(1), apply.Applied, 1)
			b.merge(stock, `{`+annotations+`"spec":{"replicas":2}}`)
			outcome := b.apply(a, replicas(1), apply.Withheld, 0)
			if diff := cmp.Diff([]string{stock}, outcome.Reverters); diff != "" {
				t.Errorf("reverters (-want +got):\n%s", diff)
			}
			clock.SetTime(clock.Now().Add(apply.DefaultRevertPause))
			b.apply(a, replicas(1), apply.Applied, 1)
		})
	}
}

// A value that a person puts in the place of ours is a conflict at once: theirs to keep, and no revert. When they take it
// back, the patch is applied without a pause.
func TestPersonsValueIsAConflictNotARevert(t *testing.T) {
	b, a, _ := revertBench(t)
	b.merge(person, `{"spec":{"replicas":3}}`)
	b.unchanged(func() {
		for range 3 {
			outcome := b.apply(a, pinned(1), apply.Conflicted, 1)
			if diff := cmp.Diff([]apply.Conflict{{Field: ".spec.replicas", Manager: person}}, outcome.Conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		}
	})
	b.merge(person, `{"spec":{"replicas":null}}`)
	b.apply(a, pinned(1), apply.Applied, 1)
}

// --force-conflicts takes a person's value, but does not fight over it either.
func TestForceConflictsDoesNotFight(t *testing.T) {
	b, a, clock := revertBench(t)
	a.ForceConflicts = true
	b.merge(person, `{"spec":{"replicas":3}}`)
	b.apply(a, pinned(1), apply.Withheld, 0)
	clock.SetTime(clock.Now().Add(apply.DefaultRevertPause))
	b.apply(a, pinned(1), apply.Applied, 2)
}

// A cache that has not seen our own write yet shows the object without the patch. That is no revert.
func TestLaggingCacheIsNoRevert(t *testing.T) {
	b := newBench(t, person, map[string]any{"domain": "apps.example.org"})
	lagging := b.live()
	a := b.applier()
	b.applyTo(a, lagging, pinned(1), apply.Applied, 1)
	b.applyTo(a, lagging, pinned(1), apply.Unchanged, 0)
	b.apply(a, pinned(1), apply.Unchanged, 0)
}

// A changed intent is a decision of ours, and so is going back to an earlier one.
func TestChangedIntentIsNoRevert(t *testing.T) {
	b, a, _ := revertBench(t)
	b.apply(a, pinned(2), apply.Applied, 1)
	b.apply(a, replicas(2), apply.Applied, 1)
	b.spec(nil, "nodePlacement", "nodeSelector")
	b.apply(a, pinned(1), apply.Applied, 1)
}

// Another object of the same name is another story, and Forget drops what is known of one.
func TestHistoryBelongsToTheObject(t *testing.T) {
	b, a, _ := revertBench(t)
	if err := b.admin.Delete(t.Context(), b.object()); err != nil {
		t.Fatal(err)
	}
	b.create(stock, replicas(2))
	b.apply(a, pinned(1), apply.Applied, 1)

	b.merge("stock-operator", takeOff)
	b.apply(a, pinned(1), apply.Withheld, 0)
	a.Forget(b.live().GetUID())
	b.apply(a, pinned(1), apply.Applied, 1)
}

// A new process that finds the patch in force knows a revert when it sees one.
func TestRevertAfterRestart(t *testing.T) {
	b, _, clock := revertBench(t)
	a := b.applier(func(a *apply.Applier) { a.Clock, a.RevertPause = clock, time.Minute })
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.merge("stock-operator", takeOff)
	if outcome := b.apply(a, pinned(1), apply.Withheld, 0); outcome.RetryAfter != time.Minute {
		t.Errorf("retry after %s, want one minute", outcome.RetryAfter)
	}
}

func TestApplierIsSafeForConcurrentUse(t *testing.T) {
	b, a, _ := revertBench(t)
	live := b.live()
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := a.Apply(context.WithoutCancel(t.Context()), live, b.intent(pinned(1)))
			a.Forget("another object")
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
