package apply_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/solonode/sno/patch/apply"
)

func newClock() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
}

func withClock(clock *clocktesting.FakePassiveClock) func(*apply.Applier) {
	return func(a *apply.Applier) { a.Clock = clock }
}

// revertBench is a patch in force, and its clock.
func revertBench(t *testing.T) (*bench, *apply.Applier, *clocktesting.FakePassiveClock) {
	t.Helper()
	b, clock := newBench(t, stock, map[string]any{"domain": "apps.example.org"}), newClock()
	a := b.applier(withClock(clock))
	b.apply(a, pinned(1), apply.Applied, 1)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	return b, a, clock
}

const revert = `{"spec":{"nodePlacement":null,"replicas":null}}`

// TestRevertIsNotFought shows R-SNO-9: after a revert nothing is sent until a pause is over, then the patch is tried once; the pause
// doubles up to a bound.
func TestRevertIsNotFought(t *testing.T) {
	b, a, clock := revertBench(t)
	for i, minutes := range []time.Duration{5, 10, 20, 40, 60, 60} {
		pause := minutes * time.Minute
		b.merge("stock-operator", fmt.Sprintf(`{"metadata":{"labels":{"turn-%d":""}},"spec":{"nodePlacement":null,"replicas":null}}`, i))
		b.unchanged(func() {
			outcome := b.apply(a, pinned(1), apply.Withheld, 0)
			b.same("pause", pause, outcome.RetryAfter)
			b.same("reverters", []string{"stock-operator"}, outcome.RevertedBy)
			clock.SetTime(clock.Now().Add(pause - time.Second))
			b.same("rest of the pause", time.Second, b.apply(a, pinned(1), apply.Withheld, 0).RetryAfter)
		})
		clock.SetTime(clock.Now().Add(time.Second))
		b.apply(a, pinned(1), apply.Applied, 1)
		b.apply(a, pinned(1), apply.Unchanged, 0)
	}
}

// A client that only removes fields leaves no trace in the object. Then no manager is named.
func TestRevertByRemovalNamesNobody(t *testing.T) {
	b, a, _ := revertBench(t)
	b.merge("stock-operator", revert)
	b.same("reverters", []string(nil), b.apply(a, pinned(1), apply.Withheld, 0).RevertedBy)
}

// A field that an overridable manager writes again is a revert as well, also when the annotation is removed.
func TestRevertByOverridableManager(t *testing.T) {
	for name, annotations := range map[string]string{"the value": "", "the whole object": `"metadata":{"annotations":{"` + annotation + `":null}},`} {
		t.Run(name, func(t *testing.T) {
			b, clock := newBench(t, stock, replicas(2)), newClock()
			a := b.applier(withClock(clock))
			b.apply(a, replicas(1), apply.Applied, 1)
			b.merge(stock, `{`+annotations+`"spec":{"replicas":2}}`)
			b.same("reverters", []string{stock}, b.apply(a, replicas(1), apply.Withheld, 0).RevertedBy)
			clock.SetTime(clock.Now().Add(apply.DefaultRevertBackoff))
			b.apply(a, replicas(1), apply.Applied, 1)
		})
	}
}

// A person's value is a conflict at once, not a revert. When it is removed, the patch is applied without a pause.
func TestPersonsValueIsAConflictNotARevert(t *testing.T) {
	b, a, _ := revertBench(t)
	b.merge(person, `{"spec":{"replicas":3}}`)
	b.unchanged(func() {
		for i := range 3 { // the first time the managedFields show it, afterwards the API server
			outcome := b.apply(a, pinned(1), apply.Conflicted, min(i, 1))
			b.same("conflicts", []apply.Conflict{{Field: ".spec.replicas", Manager: person}}, outcome.Conflicts)
		}
	})
	b.merge(person, `{"spec":{"replicas":null}}`)
	b.apply(a, pinned(1), apply.Applied, 1)
}

// ForceConflicts takes a person's value, but only after the pause.
func TestForceConflictsDoesNotFight(t *testing.T) {
	b, a, clock := revertBench(t)
	a.ForceConflicts = true
	b.merge(person, `{"spec":{"replicas":3}}`)
	b.apply(a, pinned(1), apply.Withheld, 0)
	clock.SetTime(clock.Now().Add(apply.DefaultRevertBackoff))
	b.apply(a, pinned(1), apply.Applied, 1)
}

// A stale cache that does not have our own write is no revert.
func TestStaleCacheIsNoRevert(t *testing.T) {
	b := newBench(t, person, map[string]any{"domain": "apps.example.org"})
	stale := b.live()
	a := b.applier()
	b.applyTo(a, stale, pinned(1), apply.Applied, 1)
	b.applyTo(a, stale, pinned(1), apply.Unchanged, 0)
	b.apply(a, pinned(1), apply.Unchanged, 0)
}

// A changed intent is no revert, and neither is an earlier intent again.
func TestChangedIntentIsNoRevert(t *testing.T) {
	b, a, _ := revertBench(t)
	b.apply(a, pinned(2), apply.Applied, 1)
	b.apply(a, replicas(2), apply.Applied, 1)
	b.spec(nil, "nodePlacement", "nodeSelector")
	b.apply(a, pinned(1), apply.Applied, 1)
}

// Another object of the same name has no history, and Forget drops the history of one.
func TestHistoryBelongsToTheObject(t *testing.T) {
	b, a, _ := revertBench(t)
	b.must(b.admin.Delete(t.Context(), b.object()))
	b.create(stock, replicas(2))
	b.apply(a, pinned(1), apply.Applied, 1)

	b.merge("stock-operator", revert)
	b.apply(a, pinned(1), apply.Withheld, 0)
	a.Forget(b.live().GetUID())
	b.apply(a, pinned(1), apply.Applied, 1)
}

// A new process that has seen the patch in force recognizes a revert.
func TestRevertAfterRestart(t *testing.T) {
	b, _, clock := revertBench(t)
	a := b.applier(withClock(clock))
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.merge("stock-operator", revert)
	b.apply(a, pinned(1), apply.Withheld, 0)
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
		b.must(<-done)
	}
}
