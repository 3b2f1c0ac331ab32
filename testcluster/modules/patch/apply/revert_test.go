// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solonode/sno/patch/apply"
)

func newClock() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
}

func withClock(clock *clocktesting.FakePassiveClock) func(*apply.Applier) {
	return func(a *apply.Applier) { a.Now = clock.Now }
}

func revertFixture(t *testing.T) (*objectFixture, *apply.Applier, *clocktesting.FakePassiveClock) {
	t.Helper()
	o, clock := newFixture(t, stock, map[string]any{"domain": "apps.example.org"}), newClock()
	a := o.applier(withClock(clock))
	o.apply(a, pinned(1), apply.Applied, 1)
	o.apply(a, pinned(1), apply.Unchanged, 0)
	return o, a, clock
}

const revert = `{"spec":{"nodePlacement":null,"replicas":null}}`

// TestRevertIsNotFought shows R-SNO-9: a reverted patch is withheld for a back-off, which doubles up to an hour.
func TestRevertIsNotFought(t *testing.T) {
	o, a, clock := revertFixture(t)
	for i, minutes := range []time.Duration{5, 10, 20, 40, 60, 60} {
		backoff := minutes * time.Minute
		o.merge("stock-operator", fmt.Sprintf(`{"metadata":{"labels":{"turn-%d":""}},"spec":{"nodePlacement":null,"replicas":null}}`, i))
		o.unchanged(func() {
			outcome := o.apply(a, pinned(1), apply.Withheld, 0)
			o.same("backoff", backoff, outcome.RetryAfter)
			o.same("reverters", []string{"stock-operator"}, outcome.RevertedBy)
			clock.SetTime(clock.Now().Add(backoff - time.Second))
			o.same("remaining backoff", time.Second, o.apply(a, pinned(1), apply.Withheld, 0).RetryAfter)
		})
		clock.SetTime(clock.Now().Add(time.Second))
		o.apply(a, pinned(1), apply.Applied, 1)
		o.apply(a, pinned(1), apply.Unchanged, 0)
	}
}

// A client that reverts the patch and then writes the same values is not fought: the module owns them again at once.
func TestRevertThatIsUndone(t *testing.T) {
	o, clock := newFixture(t, stock, replicas(2)), newClock()
	a := o.applier(withClock(clock))
	o.apply(a, replicas(1), apply.Applied, 1)
	o.merge(stock, `{"spec":{"replicas":2}}`)
	o.apply(a, replicas(1), apply.Withheld, 0)
	o.merge(stock, `{"spec":{"replicas":1}}`)
	o.apply(a, replicas(1), apply.Applied, 1)
	o.apply(a, replicas(1), apply.Unchanged, 0)
	o.merge(stock, `{"spec":{"replicas":2}}`)
	o.same("back-off", 2*apply.DefaultRevertBackoff, o.apply(a, replicas(1), apply.Withheld, 0).RetryAfter)
}

// A client that only removes fields leaves no entry in managedFields.
func TestRevertByRemovalNamesNobody(t *testing.T) {
	o, a, _ := revertFixture(t)
	o.merge("stock-operator", revert)
	o.same("reverters", []string(nil), o.apply(a, pinned(1), apply.Withheld, 0).RevertedBy)
}

func TestRevertByOverridableManager(t *testing.T) {
	for name, annotations := range map[string]string{"the value": "", "the whole object": `"metadata":{"annotations":{"` + annotation + `":null}},`} {
		t.Run(name, func(t *testing.T) {
			o, clock := newFixture(t, stock, replicas(2)), newClock()
			a := o.applier(withClock(clock))
			o.apply(a, replicas(1), apply.Applied, 1)
			o.merge(stock, `{`+annotations+`"spec":{"replicas":2}}`)
			o.same("reverters", []string{stock}, o.apply(a, replicas(1), apply.Withheld, 0).RevertedBy)
			clock.SetTime(clock.Now().Add(apply.DefaultRevertBackoff))
			o.apply(a, replicas(1), apply.Applied, 1)
		})
	}
}

// A value of a person is a conflict at once. When it is removed, the patch is applied without a back-off.
func TestPersonsValueIsAConflictNotARevert(t *testing.T) {
	o, a, _ := revertFixture(t)
	o.merge(person, `{"spec":{"replicas":3}}`)
	o.unchanged(func() {
		for i := range 3 { // the first time the managedFields show it, afterwards the API server
			outcome := o.apply(a, pinned(1), apply.Conflicted, min(i, 1))
			o.same("conflicts", []apply.Conflict{{Field: ".spec.replicas", Manager: person}}, outcome.Conflicts)
		}
	})
	o.merge(person, `{"spec":{"replicas":null}}`)
	o.apply(a, pinned(1), apply.Applied, 1)
}

func TestForceConflictsDoesNotFight(t *testing.T) {
	o, a, clock := revertFixture(t)
	a.ForceConflicts = true
	o.merge(person, `{"spec":{"replicas":3}}`)
	o.apply(a, pinned(1), apply.Withheld, 0)
	clock.SetTime(clock.Now().Add(apply.DefaultRevertBackoff))
	o.apply(a, pinned(1), apply.Applied, 1)
}

func TestStaleCacheIsNoRevert(t *testing.T) {
	o := newFixture(t, person, map[string]any{"domain": "apps.example.org"})
	stale := o.live()
	a := o.applier()
	o.applyTo(a, stale, pinned(1), apply.Applied, 1)
	o.applyTo(a, stale, pinned(1), apply.Unchanged, 0)
	o.apply(a, pinned(1), apply.Unchanged, 0)
}

func TestChangedIntentIsNoRevert(t *testing.T) {
	o, a, _ := revertFixture(t)
	o.apply(a, pinned(2), apply.Applied, 1)
	o.apply(a, replicas(2), apply.Applied, 1)
	o.spec(nil, "nodePlacement", "nodeSelector")
	o.apply(a, pinned(1), apply.Applied, 1)
}

// What the applier wrote itself, without an answer, is no revert by another client, also while the cache is stale.
func TestLostAnswerIsNoRevert(t *testing.T) {
	release := func(ctx context.Context, a *apply.Applier, o *objectFixture) error {
		_, err := a.Release(ctx, o.live(), apply.ReleaseOptions{})
		return err
	}
	change := func(ctx context.Context, a *apply.Applier, o *objectFixture) error {
		_, err := a.Apply(ctx, o.live(), o.intent(pinned(3)))
		return err
	}
	for name, test := range map[string]struct {
		lost    func(context.Context, *apply.Applier, *objectFixture) error
		arrives bool
	}{
		"a release": {release, true}, "a release that never arrived": {release, false},
		"a change": {change, true}, "a change that never arrived": {change, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newFixture(t, stock, replicas(2))
			a := o.applier()
			o.apply(a, pinned(1), apply.Applied, 1)
			o.apply(a, pinned(1), apply.Unchanged, 0)
			before, connected := o.live(), a.Client
			a.Client = o.losesAnswers(test.arrives)
			o.fails("writing", test.lost(t.Context(), a, o), errCrash)
			a.Client = connected
			o.applyTo(a, before, pinned(1), apply.Unchanged, 0)
			if test.arrives {
				o.apply(a, pinned(1), apply.Applied, 1)
			}
			o.spec(int64(1), "replicas")
			// From then on a revert is one.
			o.merge(stock, `{"metadata":{"labels":{"example.com/touched":""}}}`)
			o.apply(a, pinned(1), apply.Unchanged, 0)
			o.merge("stock-operator", revert)
			o.apply(a, pinned(1), apply.Withheld, 0)
		})
	}
}

// losesAnswers returns a client whose answers are lost, and requests too, unless they arrive.
func (o *objectFixture) losesAnswers(arrive bool) client.Client {
	return interceptor.NewClient(o.server.Client(o, o.namespace, "system:masters"), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if arrive {
				o.must(c.Apply(ctx, obj, opts...))
			}
			return errCrash
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if arrive {
				o.must(c.Patch(ctx, obj, p, opts...))
			}
			return errCrash
		},
	})
}

// A recreated object has no history, and Forget drops it.
func TestHistoryBelongsToTheObject(t *testing.T) {
	o, a, _ := revertFixture(t)
	o.must(o.admin.Delete(t.Context(), o.object()))
	o.create(stock, replicas(2))
	o.apply(a, pinned(1), apply.Applied, 1)

	o.merge("stock-operator", revert)
	o.apply(a, pinned(1), apply.Withheld, 0)
	a.Forget(o.live().GetUID())
	o.apply(a, pinned(1), apply.Applied, 1)
}

func TestRevertAfterRestart(t *testing.T) {
	o, _, clock := revertFixture(t)
	a := o.applier(withClock(clock))
	o.apply(a, pinned(1), apply.Unchanged, 0)
	o.merge("stock-operator", revert)
	o.apply(a, pinned(1), apply.Withheld, 0)
}

func TestApplierIsSafeForConcurrentUse(t *testing.T) {
	o, a, _ := revertFixture(t)
	live := o.live()
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := a.Apply(context.WithoutCancel(t.Context()), live, o.intent(pinned(1)))
			a.Forget("another object")
			done <- err
		}()
	}
	for range 4 {
		o.must(<-done)
	}
}
