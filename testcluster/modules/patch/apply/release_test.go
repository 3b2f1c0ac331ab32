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
		change   func(*objectFixture, *apply.Applier) // after the patch
		options  apply.ReleaseOptions
		requests int
		want     any
		managers []string
	}{
		"taken by force": {stock, 2, nil, apply.ReleaseOptions{}, 2, int64(2), []string{stock}},
		"co-owned":       {person, 1, nil, apply.ReleaseOptions{}, 1, int64(1), []string{person}},
		"a later intent equals the replaced value": {stock, 2, func(o *objectFixture, a *apply.Applier) {
			o.apply(a, pinned(2), apply.Applied, 1)
		}, apply.ReleaseOptions{}, 2, int64(2), []string{stock}},
		"the newest replaced value": {stock, 2, func(o *objectFixture, _ *apply.Applier) {
			o.merge(stock, `{"spec":{"replicas":4}}`)
			o.apply(o.applier(), pinned(1), apply.Applied, 1) // a new process cannot detect a revert
			o.replaced(stockReplicas("4"))
		}, apply.ReleaseOptions{}, 2, int64(4), []string{stock}},
		"a person wrote it since": {stock, 2, func(o *objectFixture, _ *apply.Applier) {
			o.merge(person, `{"spec":{"replicas":5}}`)
		}, apply.ReleaseOptions{}, 1, int64(5), []string{person}},
		"not to be restored": {stock, 2, nil, notReplicas, 1, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newFixture(t, test.creator, replicas(test.created))
			a := o.applier()
			o.apply(a, pinned(1), apply.Applied, 1)
			if test.change != nil {
				test.change(o, a)
			}
			o.release(a, test.options, apply.Released, test.requests)
			o.spec(test.want, "replicas")
			o.spec(nil, "nodePlacement", "nodeSelector")
			o.managers(".spec.replicas", test.managers...)
			o.owned()
			o.replaced()
			o.unchanged(func() { o.release(a, apply.ReleaseOptions{}, apply.Unchanged, 0) })
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
			o := newFixture(t, test.creator, replicas(test.created))
			if test.also != "" {
				o.must(o.admin.Apply(t.Context(), o.intent(replicas(1)), client.FieldOwner(test.also)))
			}
			a := o.applier()
			o.apply(a, test.applied, apply.Applied, 1)
			o.release(a, leave(test.leave), apply.Released, test.requests)
			o.spec(test.want, "replicas")
			o.managers(".spec.replicas", test.managers...)
			o.owned()
			o.replaced()
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
			o := newFixture(t, stock, replicas(2))
			o.apply(o.applier(), pinned(1), apply.Applied, 1)
			_, err := o.crash(verb).Release(t.Context(), o.live(), apply.ReleaseOptions{})
			o.fails("releasing", err, errCrash)
			o.spec(test.replicas, "replicas")
			o.managers(".spec.replicas", test.manager)
			o.replaced(stockReplicas("2"))

			o.release(o.applier(), apply.ReleaseOptions{}, apply.Released, test.requests)
			o.spec(int64(2), "replicas")
			o.managers(".spec.replicas", stock)
			o.replaced()
			o.owned()
		})
	}
}

func TestReleaseLosesTheRace(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	a := o.applier()
	o.apply(a, replicas(1), apply.Applied, 1)
	live := o.live()
	o.merge(person, `{"spec":{"replicas":5}}`)
	_, err := a.Release(t.Context(), live, apply.ReleaseOptions{})
	o.fails("releasing", err, apply.ErrStale)
	o.spec(int64(5), "replicas")
	o.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	o.spec(int64(5), "replicas")
}

// Another client owns the map around the fields, but no member. The release leaves an empty map.
func TestReleaseEmptiesAnotherOwnersMap(t *testing.T) {
	o := newFixture(t, person, map[string]any{"nodePlacement": map[string]any{}})
	a, dry := o.applier(), o.applier(dryRun)
	o.apply(a, pinned(1), apply.Applied, 1)
	o.managers(".spec.nodePlacement.nodeSelector", owner)
	o.unchanged(func() {
		o.release(dry, apply.ReleaseOptions{}, apply.WouldRelease, 2)
		o.apply(dry, replicas(1), apply.WouldApply, 2)
	})
	o.apply(a, replicas(2), apply.Applied, 3)
	o.spec(map[string]any{}, "nodePlacement")
	o.apply(a, pinned(1), apply.Applied, 1)
	o.release(a, apply.ReleaseOptions{}, apply.Released, 3)
	o.spec(map[string]any{}, "nodePlacement")
	o.managers(".spec.nodePlacement", person)
	o.owned()
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
			o := newFixture(t, person, headers(test.others...))
			a := o.applier()
			o.apply(a, headers(header("X-One"), header("X-Two")), apply.Applied, 1)
			o.release(a, apply.ReleaseOptions{}, apply.Released, test.requests)
			o.spec(append([]any{}, test.others...), path...)
			o.managers(".spec.httpHeaders.actions.response", person)
			o.owned()
		})
	}
}

// The same with a forced value: both requests are bound to the version that was read.
func TestForceEmptiesAnotherOwnersMap(t *testing.T) {
	o := newFixture(t, person, map[string]any{"nodePlacement": map[string]any{}})
	o.apply(o.applier(), map[string]any{"nodePlacement": pinned(1)["nodePlacement"]}, apply.Applied, 1)
	o.merge(stock, `{"spec":{"replicas":2}}`)
	o.apply(o.applier(), replicas(1), apply.Applied, 3)
	o.spec(map[string]any{}, "nodePlacement")
	o.spec(int64(1), "replicas")
	o.replaced(stockReplicas("2"))
}

// A stale cache still has the patch after the release, which must not count as a revert.
func TestOwnReleaseIsNoRevert(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	a := o.applier()
	o.apply(a, pinned(1), apply.Applied, 1)
	old := o.live()
	o.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	o.applyTo(a, old, pinned(1), apply.Unchanged, 0)
	o.apply(a, pinned(1), apply.Applied, 1)
}
