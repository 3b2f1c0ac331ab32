package apply_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// TestTrap8ReleaseRestoresForcedValue shows R-SNO-6 (U-SSA-8): letting go of a field that was forced would remove it.
// It goes back to its value and its manager.
func TestTrap8ReleaseRestoresForcedValue(t *testing.T) {
	b := newBench(t, stock, map[string]any{"replicas": int64(2), "domain": "apps.example.org"})
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.spec(int64(2), "replicas")
	b.spec(nil, "nodePlacement", "nodeSelector")
	b.managers(".spec.replicas", stock)
	b.owned()
	b.remembered()
	b.unchanged(func() { b.release(a, apply.ReleaseOptions{}, apply.Unchanged, 0) })
	// A patch after a release is a new one, not a revert.
	b.apply(a, pinned(1), apply.Applied, 1)
}

// The other half of U-SSA-8: a value that somebody else owns too stays when we let go.
func TestTrap8ReleaseLeavesCoOwnedValue(t *testing.T) {
	b := newBench(t, person, replicas(1))
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	b.managers(".spec.replicas", person, owner)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	b.spec(int64(1), "replicas")
	b.managers(".spec.replicas", person)
}

// A later intent can happen to equal the remembered value. It is the stock operator's again after the release all the same.
func TestReleaseRestoresEqualValue(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, replicas(1), apply.Applied, 1)
	b.apply(a, replicas(2), apply.Applied, 1)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.spec(int64(2), "replicas")
	b.managers(".spec.replicas", stock)
	b.owned()
}

// The newest value that was somebody else's is the one to put back.
func TestReleaseRestoresNewestValue(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	b.apply(b.applier(), replicas(1), apply.Applied, 1)
	b.merge(stock, `{"spec":{"replicas":4}}`)
	a := b.applier() // a new process knows of no revert
	b.apply(a, replicas(1), apply.Applied, 1)
	b.remembered(patch.Replaced{Field: ".spec.replicas", Manager: stock, Value: []byte("4")})
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.spec(int64(4), "replicas")
}

// A person who wrote the field after us keeps it.
func TestReleaseLeavesWhatIsNoLongerOurs(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	b.merge(person, `{"spec":{"replicas":5}}`)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	b.spec(int64(5), "replicas")
	b.managers(".spec.replicas", person)
	b.remembered()
}

func TestReleaseRestoresWhatIsAskedFor(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	b.release(a, apply.ReleaseOptions{Restore: func(r patch.Replaced) bool { return r.Field != ".spec.replicas" }}, apply.Released, 1)
	b.spec(nil, "replicas")
	b.remembered()
}

// Leave replaces a creation-time default that we co-own or took over, and nothing that anybody else owns. What is left behind is nobody's who
// could remove it by letting go.
func TestReleaseLeave(t *testing.T) {
	left := owner + "-released"
	leave := func(value string) apply.ReleaseOptions {
		return apply.ReleaseOptions{
			Restore: func(patch.Replaced) bool { return false },
			Leave:   []patch.Replaced{{Field: ".spec.replicas", Manager: left, Value: []byte(value)}},
		}
	}
	tests := map[string]struct {
		creator  string
		created  int64
		also     string
		leave    string
		requests int
		want     int64
		managers []string
	}{
		"a creation-time default, co-owned":       {stock, 1, "", "2", 2, 2, []string{left}},
		"a creation-time default, taken over":     {stock, 2, "", "3", 2, 3, []string{left}},
		"what is there becomes another manager's": {stock, 2, "", "1", 2, 1, []string{left}},
		"a person's":                      {person, 1, "", "2", 1, 1, []string{person}},
		"a default that a person set too": {stock, 1, person, "2", 1, 1, []string{stock, person}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.creator, replicas(test.created))
			if test.also != "" {
				if err := b.admin.Apply(t.Context(), b.intent(replicas(1)), client.FieldOwner(test.also)); err != nil {
					t.Fatal(err)
				}
			}
			a := b.applier()
			b.apply(a, replicas(1), apply.Applied, 1)
			b.release(a, leave(test.leave), apply.Released, test.requests)
			b.spec(test.want, "replicas")
			b.managers(".spec.replicas", test.managers...)
			b.owned()
			b.remembered()
		})
	}
	t.Run("a default that is not ours", func(t *testing.T) {
		b := newBench(t, stock, replicas(1))
		a := b.applier()
		b.apply(a, map[string]any{"domain": "apps.example.org"}, apply.Applied, 1)
		b.release(a, leave("2"), apply.Released, 1)
		b.spec(int64(1), "replicas")
	})
}

// The release is cut off after the values were put back: the annotation is still there, and a second release finishes.
func TestReleaseCutOffAfterRestoring(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	b.apply(b.applier(), pinned(1), apply.Applied, 1)
	cut := errors.New("the process is killed")
	a := b.applier()
	a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return cut
		},
	})
	if _, err := a.Release(t.Context(), b.live(), apply.ReleaseOptions{}); !errors.Is(err, cut) {
		t.Fatalf("got %v, want the cut", err)
	}
	b.spec(int64(2), "replicas")
	b.managers(".spec.replicas", stock)
	b.remembered(patch.Replaced{Field: ".spec.replicas", Manager: stock, Value: []byte("2")})

	b.release(b.applier(), apply.ReleaseOptions{}, apply.Released, 1)
	b.spec(int64(2), "replicas")
	b.managers(".spec.replicas", stock)
	b.remembered()
	b.owned()
}

// The release is cut off before anything was put back: nothing is lost.
func TestReleaseCutOffBeforeRestoring(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	b.apply(b.applier(), pinned(1), apply.Applied, 1)
	cut := errors.New("the process is killed")
	a := b.applier()
	a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return cut
		},
	})
	b.unchanged(func() {
		if _, err := a.Release(t.Context(), b.live(), apply.ReleaseOptions{}); !errors.Is(err, cut) {
			t.Fatalf("got %v, want the cut", err)
		}
	})
	b.release(b.applier(), apply.ReleaseOptions{}, apply.Released, 2)
	b.spec(int64(2), "replicas")
}

// Between reading the object and putting the value back a person writes it: the person wins.
func TestReleaseLosesTheRace(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, replicas(1), apply.Applied, 1)
	live := b.live()
	b.merge(person, `{"spec":{"replicas":5}}`)
	if _, err := a.Release(t.Context(), live, apply.ReleaseOptions{}); !errors.Is(err, apply.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	b.spec(int64(5), "replicas")
	b.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	b.spec(int64(5), "replicas")
}

// Somebody else owns the map around our fields and nothing in it. Taking everything out of it leaves an empty map.
func TestReleaseEmptiesSomebodyElsesMap(t *testing.T) {
	b := newBench(t, person, map[string]any{"nodePlacement": map[string]any{}})
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	b.managers(".spec.nodePlacement.nodeSelector", owner)
	dry := b.applier(func(a *apply.Applier) { a.DryRun = true })
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

// The same on the way to a forced value: the merge patch and the forced write are both bound to what was read.
func TestForceEmptiesSomebodyElsesMap(t *testing.T) {
	b := newBench(t, person, map[string]any{"nodePlacement": map[string]any{}})
	b.apply(b.applier(), map[string]any{"nodePlacement": pinned(1)["nodePlacement"]}, apply.Applied, 1)
	b.merge(stock, `{"spec":{"replicas":2}}`)
	b.apply(b.applier(), replicas(1), apply.Applied, 3)
	b.spec(map[string]any{}, "nodePlacement")
	b.spec(int64(1), "replicas")
	b.remembered(patch.Replaced{Field: ".spec.replicas", Manager: stock, Value: []byte("2")})
}
