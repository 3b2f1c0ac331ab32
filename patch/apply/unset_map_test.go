package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solonode/sno/patch/apply"
)

// around is the map around the fields that have to go, as its path.
func (k kindOf) around() string { return ".spec." + strings.Join(k.path, ".") }

// whole are all fields that have to go, and the map around them.
func (k kindOf) whole() []string { return append(k.all(), k.around()) }

// gone fails when the map is there.
func (b *bench) gone(k kindOf) {
	b.Helper()
	if value, found, err := unstructured.NestedFieldNoCopy(b.live().Object, append([]string{"spec"}, k.path...)...); found || err != nil {
		b.Errorf("%s is still there: %v, %v", k.around(), value, err)
	}
}

// A map in which everything goes goes as well, and does not come back: not at rest, not with a later change of the intent. The release brings back
// what was in it.
func TestUnsetMap(t *testing.T) {
	k := kinds["built-in type"]
	b := k.bench(t, stock)
	before := b.values(k.whole()...)
	a := b.applier(k.takeOver)
	b.applyWithout(a, b.live(), replicas(1), k.whole(), apply.Applied, k.requests+1)
	b.gone(k)
	rest := func(n int64) {
		t.Helper()
		b.unchanged(func() {
			for _, unset := range [][]string{k.whole(), nil, k.all()} {
				for _, applier := range []*apply.Applier{a, b.applier(k.takeOver)} {
					b.applyWithout(applier, b.live(), replicas(n), unset, apply.Unchanged, 0)
				}
			}
		})
	}
	rest(1)
	template := b.values(".spec.template")
	b.apply(a, replicas(3), apply.Applied, 1)
	b.gone(k)
	b.same("the pod template after a later change", template, b.values(".spec.template"))
	rest(3)
	b.release(b.applier(k.takeOver), apply.ReleaseOptions{}, apply.Released, 2)
	b.same("fields after the release", before, b.values(k.whole()...))
	for _, field := range k.whole() {
		b.managers(field, stock)
	}
	b.owned()
	b.remembered()
}

// The process dies with the fields gone and the map still there. The next one finishes, or gives everything back.
func TestUnsetMapCutOff(t *testing.T) {
	k := kinds["built-in type"]
	cut := errors.New("the process is killed")
	for _, named := range []string{"all of it again", "the map alone"} {
		for _, release := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, release %t", named, release), func(t *testing.T) {
				b := k.bench(t, stock)
				before := b.values(k.whole()...)
				a := b.applier(k.takeOver)
				a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
						if _, there := b.values(k.field)[k.field]; !there {
							return cut
						}
						return c.Patch(ctx, obj, p, opts...)
					},
				})
				if _, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), k.whole()...); !errors.Is(err, cut) {
					t.Fatalf("%v, want the cut", err)
				}
				b.same("fields that shall be absent", map[string]any{}, b.values(k.all()...))
				b.spec(k.left, k.path...)
				unset := k.whole()
				if named == "the map alone" {
					unset = []string{k.around()}
				}
				a = b.applier(k.takeOver)
				if !release {
					if _, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), unset...); err != nil {
						t.Fatal(err)
					}
					b.gone(k)
					b.applyWithout(a, b.live(), replicas(1), nil, apply.Unchanged, 0)
				}
				if _, err := a.Release(t.Context(), b.live(), apply.ReleaseOptions{}); err != nil {
					t.Fatal(err)
				}
				b.same("fields after the release", before, b.values(k.whole()...))
				b.managers(k.field, stock)
				b.owned()
			})
		}
	}
}

// What somebody puts into the map just before it is removed stays, with the map.
func TestUnsetMapLosesTheRace(t *testing.T) {
	k := kinds["built-in type"]
	b := k.bench(t, stock)
	a := b.applier(k.takeOver)
	const nodes = `{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]}}`
	a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			b.merge(person, `{"spec":{"template":{"spec":{"affinity":`+nodes+`}}}}`)
			return c.Patch(ctx, obj, p, opts...)
		},
	})
	if _, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), k.whole()...); !errors.Is(err, apply.ErrStale) {
		t.Fatalf("%v, want ErrStale", err)
	}
	b.managers(".spec.template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", person)
	// Now only the map inside can go.
	a = b.applier(k.takeOver)
	b.applyWithout(a, b.live(), replicas(1), []string{".spec.template.spec.affinity.podAntiAffinity"}, apply.Applied, 2)
	b.spec(map[string]any{"nodeAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
		"weight":     int64(1),
		"preference": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Exists"}}},
	}}}}, k.path...)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	if len(b.values(k.field)) != 1 {
		t.Error("the value did not come back")
	}
}

// A map with something in it that nobody named stays, and nothing is written.
func TestUnsetMapRefused(t *testing.T) {
	k := kinds["built-in type"]
	b := k.bench(t, stock)
	b.unchanged(func() {
		outcome, err := b.applier(k.takeOver).Apply(t.Context(), b.live(), b.intent(replicas(1)), k.around())
		if !errors.Is(err, apply.ErrUnset) || outcome.Kind != apply.Refused {
			t.Errorf("%+v, %v, want ErrUnset", outcome, err)
		}
	})
}

// The manager writes the map again, with the field or empty: that is a revert, and not fought over.
func TestUnsetMapRevert(t *testing.T) {
	k := kinds["built-in type"]
	for _, later := range []bool{false, true} {
		b := k.bench(t, stock)
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		a := b.applier(k.takeOver, func(a *apply.Applier) { a.Clock = clock })
		b.applyWithout(a, b.live(), replicas(1), k.whole(), apply.Applied, k.requests+1)
		if later {
			b.apply(a, replicas(3), apply.Applied, 1)
			b.apply(a, replicas(1), apply.Applied, 1)
		}
		b.apply(a, replicas(1), apply.Unchanged, 0) // the caller names only what is there
		for _, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
			b.merge(stock, k.with(k.again))
			b.unchanged(func() {
				outcome := b.applyWithout(a, b.live(), replicas(1), []string{k.field, k.around()}, apply.Withheld, 0)
				b.same("pause", pause, outcome.RetryAfter)
			})
			clock.SetTime(clock.Now().Add(pause))
			outcome, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), k.field, k.around())
			if err != nil || outcome.Kind != apply.Applied {
				t.Fatalf("after the pause: %+v, %v", outcome, err)
			}
			b.gone(k)
			b.apply(a, replicas(1), apply.Unchanged, 0)
		}
		if !slices.Contains(b.replacedFields(stock), k.field) {
			t.Error("the newest value is not remembered")
		}
	}
}
