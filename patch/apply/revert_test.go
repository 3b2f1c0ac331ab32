// SPDX-License-Identifier: Apache-2.0

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

func revertEnvironment(t *testing.T) (*environment, *apply.Applier, *clocktesting.FakePassiveClock) {
	t.Helper()
	b, clock := newEnvironment(t, stock, map[string]any{"domain": "apps.example.org"}), newClock()
	a := b.applier(withClock(clock))
	b.apply(a, pinned(1), apply.Applied, 1)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	return b, a, clock
}

const revert = `{"spec":{"nodePlacement":null,"replicas":null}}`

// TestRevertIsNotFought shows R-SNO-9: a reverted patch is withheld for a back-off, which doubles up to an hour.
func TestRevertIsNotFought(t *testing.T) {
	b, a, clock := revertEnvironment(t)
	for i, minutes := range []time.Duration{5, 10, 20, 40, 60, 60} {
		backoff := minutes * time.Minute
		b.merge("stock-operator", fmt.Sprintf(`{"metadata":{"labels":{"turn-%d":""}},"spec":{"nodePlacement":null,"replicas":null}}`, i))
		b.unchanged(func() {
			outcome := b.apply(a, pinned(1), apply.Withheld, 0)
			b.same("backoff", backoff, outcome.RetryAfter)
			b.same("reverters", []string{"stock-operator"}, outcome.RevertedBy)
			clock.SetTime(clock.Now().Add(backoff - time.Second))
			b.same("remaining backoff", time.Second, b.apply(a, pinned(1), apply.Withheld, 0).RetryAfter)
		})
		clock.SetTime(clock.Now().Add(time.Second))
		b.apply(a, pinned(1), apply.Applied, 1)
		b.apply(a, pinned(1), apply.Unchanged, 0)
	}
}

// A client that reverts the patch and then writes the same values is not fought: the module owns them again at once.
func TestRevertThatIsUndone(t *testing.T) {
	b, clock := newEnvironment(t, stock, replicas(2)), newClock()
	a := b.applier(withClock(clock))
	b.apply(a, replicas(1), apply.Applied, 1)
	b.merge(stock, `{"spec":{"replicas":2}}`)
	b.apply(a, replicas(1), apply.Withheld, 0)
	b.merge(stock, `{"spec":{"replicas":1}}`)
	b.apply(a, replicas(1), apply.Applied, 1)
	b.apply(a, replicas(1), apply.Unchanged, 0)
	b.merge(stock, `{"spec":{"replicas":2}}`)
	b.same("back-off", 2*apply.DefaultRevertBackoff, b.apply(a, replicas(1), apply.Withheld, 0).RetryAfter)
}

// A clock that jumps an hour forward and back neither repeats a retry nor delays one for longer than its back-off.
func TestRevertWithAClockThatJumps(t *testing.T) {
	b, a, clock := revertEnvironment(t)
	jump := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	b.merge("stock-operator", revert)
	b.apply(a, pinned(1), apply.Withheld, 0)
	jump(time.Hour)
	b.apply(a, pinned(1), apply.Applied, 1)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.merge("stock-operator", revert)
	b.apply(a, pinned(1), apply.Withheld, 0)
	jump(-time.Hour)
	b.same("back-off", 2*apply.DefaultRevertBackoff, b.apply(a, pinned(1), apply.Withheld, 0).RetryAfter)
	jump(2 * apply.DefaultRevertBackoff)
	b.apply(a, pinned(1), apply.Applied, 1)
}

// A client that only removes fields leaves no entry in managedFields.
func TestRevertByRemovalNamesNobody(t *testing.T) {
	b, a, _ := revertEnvironment(t)
	b.merge("stock-operator", revert)
	b.same("reverters", []string(nil), b.apply(a, pinned(1), apply.Withheld, 0).RevertedBy)
}

func TestRevertByOverridableManager(t *testing.T) {
	for name, annotations := range map[string]string{"the value": "", "the whole object": `"metadata":{"annotations":{"` + annotation + `":null}},`} {
		t.Run(name, func(t *testing.T) {
			b, clock := newEnvironment(t, stock, replicas(2)), newClock()
			a := b.applier(withClock(clock))
			b.apply(a, replicas(1), apply.Applied, 1)
			b.merge(stock, `{`+annotations+`"spec":{"replicas":2}}`)
			b.same("reverters", []string{stock}, b.apply(a, replicas(1), apply.Withheld, 0).RevertedBy)
			clock.SetTime(clock.Now().Add(apply.DefaultRevertBackoff))
			b.apply(a, replicas(1), apply.Applied, 1)
		})
	}
}

// A value of a person is a conflict at once. When it is removed, the patch is applied without a back-off.
func TestPersonsValueIsAConflictNotARevert(t *testing.T) {
	b, a, _ := revertEnvironment(t)
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

func TestForceConflictsDoesNotFight(t *testing.T) {
	b, a, clock := revertEnvironment(t)
	a.ForceConflicts = true
	b.merge(person, `{"spec":{"replicas":3}}`)
	b.apply(a, pinned(1), apply.Withheld, 0)
	clock.SetTime(clock.Now().Add(apply.DefaultRevertBackoff))
	b.apply(a, pinned(1), apply.Applied, 1)
}

func TestStaleCacheIsNoRevert(t *testing.T) {
	b := newEnvironment(t, person, map[string]any{"domain": "apps.example.org"})
	stale := b.live()
	a := b.applier()
	b.applyTo(a, stale, pinned(1), apply.Applied, 1)
	b.applyTo(a, stale, pinned(1), apply.Unchanged, 0)
	b.apply(a, pinned(1), apply.Unchanged, 0)
}

func TestChangedIntentIsNoRevert(t *testing.T) {
	b, a, _ := revertEnvironment(t)
	b.apply(a, pinned(2), apply.Applied, 1)
	b.apply(a, replicas(2), apply.Applied, 1)
	b.spec(nil, "nodePlacement", "nodeSelector")
	b.apply(a, pinned(1), apply.Applied, 1)
}

// A recreated object has no history, and Forget drops it.
func TestHistoryBelongsToTheObject(t *testing.T) {
	b, a, _ := revertEnvironment(t)
	b.must(b.admin.Delete(t.Context(), b.object()))
	b.create(stock, replicas(2))
	b.apply(a, pinned(1), apply.Applied, 1)

	b.merge("stock-operator", revert)
	b.apply(a, pinned(1), apply.Withheld, 0)
	a.Forget(b.live().GetUID())
	b.apply(a, pinned(1), apply.Applied, 1)
}

func TestRevertAfterRestart(t *testing.T) {
	b, _, clock := revertEnvironment(t)
	a := b.applier(withClock(clock))
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.merge("stock-operator", revert)
	b.apply(a, pinned(1), apply.Withheld, 0)
}

func TestApplierIsSafeForConcurrentUse(t *testing.T) {
	b, a, _ := revertEnvironment(t)
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
