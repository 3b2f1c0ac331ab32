// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// TestRelease shows R-SNO-6 (U-SSA-8): forced values are restored to their managers, and fields with other owners stay.
func TestRelease(t *testing.T) {
	notReplicas := apply.ReleaseOptions{Restore: func(r patch.Replaced) bool { return r.Field != ".spec.replicas" }}
	for name, test := range map[string]struct {
		creator  string
		created  int64
		change   func(*environment, *apply.Applier) // after the patch
		options  apply.ReleaseOptions
		requests int
		want     any
		managers []string
	}{
		"taken by force": {stock, 2, nil, apply.ReleaseOptions{}, 2, int64(2), []string{stock}},
		"co-owned":       {person, 1, nil, apply.ReleaseOptions{}, 1, int64(1), []string{person}},
		"a later intent equals the replaced value": {stock, 2, func(b *environment, a *apply.Applier) {
			b.apply(a, pinned(2), apply.Applied, 1)
		}, apply.ReleaseOptions{}, 2, int64(2), []string{stock}},
		"the newest replaced value": {stock, 2, func(b *environment, _ *apply.Applier) {
			b.merge(stock, `{"spec":{"replicas":4}}`)
			b.apply(b.applier(), pinned(1), apply.Applied, 1) // a new process cannot detect a revert
			b.replaced(stockReplicas("4"))
		}, apply.ReleaseOptions{}, 2, int64(4), []string{stock}},
		"a person wrote it since": {stock, 2, func(b *environment, _ *apply.Applier) {
			b.merge(person, `{"spec":{"replicas":5}}`)
		}, apply.ReleaseOptions{}, 1, int64(5), []string{person}},
		"not to be restored": {stock, 2, nil, notReplicas, 1, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEnvironment(t, test.creator, replicas(test.created))
			a := b.applier()
			b.apply(a, pinned(1), apply.Applied, 1)
			if test.change != nil {
				test.change(b, a)
			}
			b.release(a, test.options, apply.Released, test.requests)
			b.spec(test.want, "replicas")
			b.spec(nil, "nodePlacement", "nodeSelector")
			b.managers(".spec.replicas", test.managers...)
			b.owned()
			b.replaced()
			b.unchanged(func() { b.release(a, apply.ReleaseOptions{}, apply.Unchanged, 0) })
		})
	}
}

// Leave replaces a creation-time default that the module co-owns or took, and no value of another manager.
func TestReleaseLeave(t *testing.T) {
	left := owner + "-released"
	leave := func(value string) apply.ReleaseOptions {
		return apply.ReleaseOptions{
			Restore: func(patch.Replaced) bool { return false },
			Leave:   []patch.Replaced{{Field: ".spec.replicas", Manager: left, Value: []byte(value)}},
		}
	}
	for name, test := range map[string]struct {
		creator  string
		created  int64
		also     string
		applied  map[string]any
		leave    string
		requests int
		want     int64
		managers []string
	}{
		"a creation-time default, co-owned":      {stock, 1, "", replicas(1), "2", 2, 2, []string{left}},
		"a creation-time default, taken over":    {stock, 2, "", replicas(1), "3", 2, 3, []string{left}},
		"equal to the intent":                    {stock, 2, "", replicas(1), "1", 2, 1, []string{left}},
		"a person's":                             {person, 1, "", replicas(1), "2", 1, 1, []string{person}},
		"a default that a person co-owns":        {stock, 1, person, replicas(1), "2", 1, 1, []string{stock, person}},
		"a default that the module does not own": {stock, 1, "", map[string]any{"domain": "apps.example.org"}, "2", 1, 1, []string{stock}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEnvironment(t, test.creator, replicas(test.created))
			if test.also != "" {
				b.must(b.admin.Apply(t.Context(), b.intent(replicas(1)), client.FieldOwner(test.also)))
			}
			a := b.applier()
			b.apply(a, test.applied, apply.Applied, 1)
			b.release(a, leave(test.leave), apply.Released, test.requests)
			b.spec(test.want, "replicas")
			b.managers(".spec.replicas", test.managers...)
			b.owned()
			b.replaced()
		})
	}
}

// An interrupted release is completed by the next one, which still has the annotation.
func TestReleaseInterrupted(t *testing.T) {
	for verb, test := range map[string]struct {
		replicas int64
		manager  string
		requests int
	}{"apply": {2, stock, 1}, "patch": {1, owner, 2}} {
		t.Run(verb, func(t *testing.T) {
			b := newEnvironment(t, stock, replicas(2))
			b.apply(b.applier(), pinned(1), apply.Applied, 1)
			_, err := b.crash(verb).Release(t.Context(), b.live(), apply.ReleaseOptions{})
			b.fails("releasing", err, errCrash)
			b.spec(test.replicas, "replicas")
			b.managers(".spec.replicas", test.manager)
			b.replaced(stockReplicas("2"))

			b.release(b.applier(), apply.ReleaseOptions{}, apply.Released, test.requests)
			b.spec(int64(2), "replicas")
			b.managers(".spec.replicas", stock)
			b.replaced()
			b.owned()
		})
	}
}

func TestReleaseLosesTheRace(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, replicas(1), apply.Applied, 1)
	live := b.live()
	b.merge(person, `{"spec":{"replicas":5}}`)
	_, err := a.Release(t.Context(), live, apply.ReleaseOptions{})
	b.fails("releasing", err, apply.ErrStale)
	b.spec(int64(5), "replicas")
	b.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	b.spec(int64(5), "replicas")
}

// Another client owns the map around the fields, but no member. The release leaves an empty map.
func TestReleaseEmptiesAnotherOwnersMap(t *testing.T) {
	b := newEnvironment(t, person, map[string]any{"nodePlacement": map[string]any{}})
	a, dry := b.applier(), b.applier(dryRun)
	b.apply(a, pinned(1), apply.Applied, 1)
	b.managers(".spec.nodePlacement.nodeSelector", owner)
	b.unchanged(func() {
		b.release(dry, apply.ReleaseOptions{}, apply.WouldRelease, 2)
		b.apply(dry, replicas(1), apply.WouldApply, 2)
	})
	b.apply(a, replicas(2), apply.Applied, 3)
	b.spec(map[string]any{}, "nodePlacement")
	b.apply(a, pinned(1), apply.Applied, 1)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 3)
	b.spec(map[string]any{}, "nodePlacement")
	b.managers(".spec.nodePlacement", person)
	b.owned()
}

// The same with a list, in which elements of another client stay.
func TestReleaseEmptiesAnotherOwnersList(t *testing.T) {
	path := []string{"httpHeaders", "actions", "response"}
	headers := func(elements ...any) map[string]any {
		return map[string]any{"httpHeaders": map[string]any{"actions": map[string]any{"response": append([]any{}, elements...)}}}
	}
	header := func(name string) map[string]any {
		return map[string]any{"name": name, "action": map[string]any{"type": "Delete"}}
	}
	for name, test := range map[string]struct {
		others   []any
		requests int
	}{
		"empty":                        {nil, 3},
		"an element of another client": {[]any{header("X-Other")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newEnvironment(t, person, headers(test.others...))
			a := b.applier()
			b.apply(a, headers(header("X-One"), header("X-Two")), apply.Applied, 1)
			b.release(a, apply.ReleaseOptions{}, apply.Released, test.requests)
			b.spec(append([]any{}, test.others...), path...)
			b.managers(".spec.httpHeaders.actions.response", person)
			b.owned()
		})
	}
}

// The same with a forced value: both requests are bound to the version that was read.
func TestForceEmptiesAnotherOwnersMap(t *testing.T) {
	b := newEnvironment(t, person, map[string]any{"nodePlacement": map[string]any{}})
	b.apply(b.applier(), map[string]any{"nodePlacement": pinned(1)["nodePlacement"]}, apply.Applied, 1)
	b.merge(stock, `{"spec":{"replicas":2}}`)
	b.apply(b.applier(), replicas(1), apply.Applied, 3)
	b.spec(map[string]any{}, "nodePlacement")
	b.spec(int64(1), "replicas")
	b.replaced(stockReplicas("2"))
}

// A stale cache still has the patch after the release, which must not count as a revert.
func TestOwnReleaseIsNoRevert(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	old := b.live()
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.applyTo(a, old, pinned(1), apply.Unchanged, 0)
	b.apply(a, pinned(1), apply.Applied, 1)
}
