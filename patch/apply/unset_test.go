package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
)

// kindOf is an object of a built-in type or a custom resource, with a list that the stock operator wrote and that has to go.
type kindOf struct {
	kind schema.GroupVersionKind
	// spec is what the stock operator writes; the list is in it, at the end of the path.
	spec  string
	field string
	// others are stock fields beside it that have to go too.
	others []string
	// intent is something that nobody else owns.
	intent map[string]any
	// left is what remains of the map around the list, at path.
	left any
	path []string
	// with is a merge patch that writes the value to the list.
	with func(value string) string
	// again is another value of the list.
	again string
	// requests is how many an Apply over the stock operator sends.
	requests int
}

const antiAffinity = ".spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"

var kinds = map[string]kindOf{
	"built-in type": {
		kind: deployment,
		spec: `{"replicas":2,"selector":{"matchLabels":{"app":"console"}},"template":{"metadata":{"labels":{"app":"console","component":"downloads"}},"spec":{
			"containers":[{"name":"c","image":"i"}],"nodeSelector":{"os":"linux"},"hostname":"h",
			"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"}]}}}}}`,
		field:  antiAffinity,
		others: []string{".spec.template.spec.nodeSelector", ".spec.template.spec.hostname"},
		intent: map[string]any{"minReadySeconds": int64(1)},
		left:   map[string]any{"podAntiAffinity": map[string]any{}},
		path:   []string{"template", "spec", "affinity"},
		with: func(value string) string {
			return `{"spec":{"template":{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":` + value + `}}}}}}`
		},
		again:    `[{"topologyKey":"zone"}]`,
		requests: 1,
	},
	"custom resource": {
		kind:     ingressController,
		spec:     `{"replicas":2,"domain":"apps.example.org","nodePlacement":{"tolerations":[{"key":"infra","operator":"Exists"}],"nodeSelector":{"matchLabels":{"infra":""}}}}`,
		field:    ".spec.nodePlacement.tolerations",
		others:   []string{".spec.nodePlacement.nodeSelector", ".spec.domain"},
		intent:   map[string]any{"routeAdmission": map[string]any{"wildcardPolicy": "WildcardsAllowed"}},
		left:     map[string]any{},
		path:     []string{"nodePlacement"},
		with:     func(value string) string { return `{"spec":{"nodePlacement":{"tolerations":` + value + `}}}` },
		again:    `[{"key":"again","operator":"Exists"}]`,
		requests: 3, // one that is invalid with null, one without it, and the removal
	},
}

func onBothKinds(t *testing.T, test func(t *testing.T, k kindOf)) {
	t.Helper()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}

func (k kindOf) bench(t *testing.T, manager string) *bench {
	t.Helper()
	var spec map[string]any
	if err := json.Unmarshal([]byte(k.spec), &spec); err != nil {
		t.Fatal(err)
	}
	return newBenchOf(t, k.kind, manager, spec)
}

// all are the fields that have to go.
func (k kindOf) all() []string { return append([]string{k.field}, k.others...) }

// takeOver may take the fields that have to go, and the replicas, from the stock operator.
func (k kindOf) takeOver(a *apply.Applier) {
	a.Overridable = nil
	for _, field := range append(k.all(), ".spec.replicas") {
		a.Overridable = append(a.Overridable, apply.Overridable{Field: field, Manager: stock})
	}
}

// values are those of the fields that are on the object.
func (b *bench) values(fields ...string) map[string]any {
	b.Helper()
	live, out := b.live(), map[string]any{}
	for _, field := range fields {
		value, found, err := unstructured.NestedFieldNoCopy(live.Object, strings.Split(field[1:], ".")...)
		if err != nil {
			b.Fatal(err)
		}
		if found {
			out[field] = value
		}
	}
	return out
}

func (b *bench) same(what string, want, got any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// replacedFields is what is remembered, by manager, without the values.
func (b *bench) replacedFields(manager string) []string {
	b.Helper()
	replaced, err := patch.ReadReplaced(b.live().GetAnnotations(), module)
	if err != nil {
		b.Fatal(err)
	}
	var fields []string
	for _, r := range replaced {
		if r.Manager == manager {
			fields = append(fields, r.Field)
		}
	}
	return fields
}

func sorted(fields ...string) []string { return slices.Sorted(slices.Values(fields)) }

// Fields of an overridable manager go with the intent, stay away without another request, and come back to their manager.
func TestUnset(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		before := b.values(k.all()...)
		a := b.applier(k.takeOver)
		outcome := b.applyWithout(a, b.live(), replicas(1), k.all(), apply.Applied, k.requests)
		for _, field := range k.all() {
			at := slices.IndexFunc(outcome.Changes, func(c ownership.Change) bool { return c.Field == field })
			if at < 0 {
				t.Fatalf("%s is not among the changes: %+v", field, outcome.Changes)
			}
			if c := outcome.Changes[at]; c.Desired != ownership.None || !c.Differs || c.Owner != stock || c.Live == ownership.None {
				t.Errorf("change of %s: %+v", field, c)
			}
		}
		b.same("fields that shall be absent", map[string]any{}, b.values(k.all()...))
		b.spec(k.left, k.path...)
		b.spec(int64(1), "replicas")
		b.same("remembered", sorted(append(k.all(), ".spec.replicas")...), b.replacedFields(stock))

		// The next look may name the fields or not: they are absent.
		rest := func() {
			t.Helper()
			b.unchanged(func() {
				for _, unset := range [][]string{k.all(), nil, k.others} {
					for _, applier := range []*apply.Applier{a, b.applier(k.takeOver)} {
						outcome := b.applyWithout(applier, b.live(), replicas(1), unset, apply.Unchanged, 0)
						if slices.ContainsFunc(outcome.Changes, func(c ownership.Change) bool { return c.Differs }) {
							t.Errorf("differs although the patch is in force: %+v", outcome.Changes)
						}
					}
				}
			})
		}
		rest()
		b.merge(person, `{"metadata":{"labels":{"a":"b"}}}`)
		rest()

		b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
		b.same("fields after the release", before, b.values(k.all()...))
		for _, field := range append(k.all(), ".spec.replicas") {
			b.managers(field, stock)
		}
		b.owned()
		b.remembered()
		b.unchanged(func() { b.release(a, apply.ReleaseOptions{}, apply.Unchanged, 0) })
	})
}

// Somebody removes the emptied maps as well. Our absence does not bring them back.
func TestUnsetInMapThatIsGone(t *testing.T) {
	k := kinds["built-in type"]
	b := k.bench(t, stock)
	a := b.applier(k.takeOver)
	b.applyWithout(a, b.live(), replicas(1), k.all(), apply.Applied, k.requests)
	b.merge(person, `{"spec":{"template":{"spec":{"affinity":null}}}}`)
	b.unchanged(func() {
		b.apply(a, replicas(1), apply.Unchanged, 0)
		b.apply(b.applier(k.takeOver), replicas(1), apply.Unchanged, 0)
	})
	b.release(b.applier(k.takeOver), apply.ReleaseOptions{}, apply.Released, 2)
	b.managers(k.field, stock)
}

// What somebody else owns, alone or together with an overridable manager, keeps everything as it is.
func TestUnsetConflict(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		for name, create := range map[string]string{"a person's": person, "a person's and the stock operator's": stock} {
			t.Run(name, func(t *testing.T) {
				b := k.bench(t, create)
				if create == stock {
					u := b.object()
					path := strings.Split(k.field[1:], ".")
					if err := unstructured.SetNestedField(u.Object, b.values(k.field)[k.field], path...); err != nil {
						t.Fatal(err)
					}
					if err := b.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(person)); err != nil {
						t.Fatal(err)
					}
				}
				a := b.applier(k.takeOver)
				b.unchanged(func() {
					for range 2 {
						outcome := b.applyWithout(a, b.live(), k.intent, []string{k.field}, apply.Conflicted, 1)
						if !slices.Contains(outcome.Conflicts, apply.Conflict{Field: k.field, Manager: person}) {
							t.Errorf("conflicts: %+v, want %s by %s", outcome.Conflicts, k.field, person)
						}
					}
				})
				b.remembered()
				forced := b.applier(func(a *apply.Applier) { a.ForceConflicts = true })
				b.applyWithout(forced, b.live(), replicas(2), []string{k.field}, apply.Applied, k.requests+1) // the first one is refused
				b.same("fields that shall be absent", map[string]any{}, b.values(k.field))
				b.release(forced, apply.ReleaseOptions{}, apply.Released, 2)
				if len(b.values(k.field)) != 1 {
					t.Error("the value did not come back")
				}
			})
		}
	})
}

// A field of ours that the intent wants absent now needs nobody's consent, and there is nothing to remember.
func TestUnsetOwn(t *testing.T) {
	b := newBench(t, person, map[string]any{"domain": "apps.example.org"})
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	b.applyWithout(a, b.live(), replicas(1), []string{".spec.nodePlacement.tolerations"}, apply.Applied, 3)
	b.same("fields that shall be absent", map[string]any{}, b.values(".spec.nodePlacement.tolerations"))
	b.remembered()
	b.applyWithout(a, b.live(), replicas(1), []string{".spec.nodePlacement.tolerations"}, apply.Unchanged, 0)
}

// A person writes the field while we remove what was ours there: theirs stays.
func TestUnsetOwnLosesTheRace(t *testing.T) {
	b := newBench(t, person, map[string]any{"domain": "apps.example.org"})
	a := b.applier()
	b.apply(a, pinned(1), apply.Applied, 1)
	sent := 0
	a.Client = interceptor.NewClient(b.admin, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if sent++; sent == 2 {
				b.merge(person, `{"spec":{"nodePlacement":{"tolerations":[{"key":"theirs","operator":"Exists"}]}}}`)
			}
			return c.Apply(ctx, obj, opts...)
		},
	})
	if _, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), ".spec.nodePlacement.tolerations"); !errors.Is(err, apply.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	b.spec([]any{map[string]any{"key": "theirs", "operator": "Exists"}}, "nodePlacement", "tolerations")
	b.managers(".spec.nodePlacement.tolerations", person)
}

// To want one more field absent is a decision of ours, no revert.
func TestUnsetLaterIsNoRevert(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		a := b.applier(k.takeOver)
		b.applyWithout(a, b.live(), replicas(1), k.others, apply.Applied, k.requests)
		b.apply(a, replicas(1), apply.Unchanged, 0)
		b.applyWithout(a, b.live(), replicas(1), []string{k.field}, apply.Applied, k.requests)
		b.same("fields that shall be absent", map[string]any{}, b.values(k.all()...))
		b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
		b.same("number of fields after the release", len(k.all()), len(b.values(k.all()...)))
	})
}

// The manager writes the field again: that is a revert, and not fought over.
func TestUnsetRevert(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		a := b.applier(k.takeOver, func(a *apply.Applier) { a.Clock = clock })
		b.applyWithout(a, b.live(), replicas(1), []string{k.field}, apply.Applied, k.requests)
		b.apply(a, replicas(1), apply.Unchanged, 0) // the caller names only what is there
		for _, pause := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
			b.merge(stock, k.with(k.again))
			b.unchanged(func() {
				outcome := b.applyWithout(a, b.live(), replicas(1), []string{k.field}, apply.Withheld, 0)
				b.same("reverters", []string{stock}, outcome.Reverters)
				b.same("pause", pause, outcome.RetryAfter)
			})
			clock.SetTime(clock.Now().Add(pause))
			b.applyWithout(a, b.live(), replicas(1), []string{k.field}, apply.Applied, k.requests)
			b.apply(a, replicas(1), apply.Unchanged, 0)
		}
		replaced, err := patch.ReadReplaced(b.live().GetAnnotations(), module)
		if err != nil || !slices.ContainsFunc(replaced, func(r patch.Replaced) bool { return r.Field == k.field && string(r.Value) == k.again }) {
			t.Errorf("remembered %s, %v, want the newest value", replaced, err)
		}
	})
}

// A person's value in the place of the absent one is theirs at once, and the release leaves it.
func TestUnsetThenPersonsValue(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		a := b.applier(k.takeOver)
		b.applyWithout(a, b.live(), replicas(1), []string{k.field}, apply.Applied, k.requests)
		b.merge(person, k.with(k.again))
		theirs := b.values(k.field)
		b.unchanged(func() {
			outcome := b.applyWithout(a, b.live(), replicas(1), []string{k.field}, apply.Conflicted, 1)
			b.same("conflicts", []apply.Conflict{{Field: k.field, Manager: person}}, outcome.Conflicts)
		})
		b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
		b.same("the person's value", theirs, b.values(k.field))
		b.managers(k.field, person)
		b.managers(".spec.replicas", stock)
		b.remembered()
	})
}

func TestUnsetReleaseRestoresWhatIsAskedFor(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		a := b.applier(k.takeOver)
		b.applyWithout(a, b.live(), replicas(1), []string{k.field}, apply.Applied, k.requests)
		var asked []string
		b.release(a, apply.ReleaseOptions{Restore: func(r patch.Replaced) bool {
			asked = append(asked, r.Field+" of "+r.Manager)
			return r.Field == ".spec.replicas"
		}}, apply.Released, 2)
		b.same("asked about", sorted(".spec.replicas of "+stock, k.field+" of "+stock), sorted(asked...))
		b.same("the field", map[string]any{}, b.values(k.field))
		b.remembered()
		b.owned()
	})
}

func TestUnsetDryRun(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		dry := b.applier(k.takeOver, func(a *apply.Applier) { a.DryRun = true })
		b.unchanged(func() {
			for range 2 {
				b.applyWithout(dry, b.live(), replicas(1), k.all(), apply.WouldApply, k.requests)
			}
		})
		b.applyWithout(b.applier(k.takeOver), b.live(), replicas(1), k.all(), apply.Applied, k.requests)
		b.applyWithout(dry, b.live(), replicas(1), k.all(), apply.Unchanged, 0)
		b.unchanged(func() { b.release(dry, apply.ReleaseOptions{}, apply.WouldRelease, 2) })
	})
}

// A cache that has not seen our own write yet still shows the fields. That is no revert, and nothing to write.
func TestUnsetLaggingCache(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		lagging := b.live()
		a := b.applier(k.takeOver)
		b.applyWithout(a, lagging, replicas(1), k.all(), apply.Applied, k.requests)
		b.applyWithout(a, lagging, replicas(1), k.all(), apply.Unchanged, 0)
		b.apply(a, replicas(1), apply.Unchanged, 0)
	})
}

// The process dies before any of its writes. The next one finishes, or gives everything back.
func TestUnsetCutOff(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		cut := errors.New("the process is killed")
		for at := 1; at < k.requests; at++ {
			for _, release := range []bool{false, true} {
				b := k.bench(t, stock)
				before := b.values(k.all()...)
				left := at
				a := b.applier(k.takeOver)
				a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
					Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
						if left--; left < 0 {
							return cut
						}
						return c.Apply(ctx, obj, opts...)
					},
					Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
						if left--; left < 0 {
							return cut
						}
						return c.Patch(ctx, obj, p, opts...)
					},
				})
				if _, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), k.all()...); !errors.Is(err, cut) {
					t.Fatalf("after %d requests: %v, want the cut", at, err)
				}
				b.same("fields before they are removed", before, b.values(k.all()...))
				a = b.applier(k.takeOver)
				if !release {
					b.applyWithout(a, b.live(), replicas(1), k.all(), apply.Applied, k.requests)
					b.same("fields that shall be absent", map[string]any{}, b.values(k.all()...))
				}
				if _, err := a.Release(t.Context(), b.live(), apply.ReleaseOptions{}); err != nil {
					t.Fatal(err)
				}
				b.same("fields after the release", before, b.values(k.all()...))
				b.spec(int64(2), "replicas")
				for _, field := range append(k.all(), ".spec.replicas") {
					b.managers(field, stock)
				}
				b.owned()
			}
		}
	})
}

// The release is cut off after the values were put back, and finished by the next one.
func TestUnsetReleaseCutOff(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		b := k.bench(t, stock)
		before := b.values(k.all()...)
		b.applyWithout(b.applier(k.takeOver), b.live(), replicas(1), k.all(), apply.Applied, k.requests)
		cut := errors.New("the process is killed")
		a := b.applier(k.takeOver)
		a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return cut
			},
		})
		if _, err := a.Release(t.Context(), b.live(), apply.ReleaseOptions{}); !errors.Is(err, cut) {
			t.Fatalf("got %v, want the cut", err)
		}
		b.release(b.applier(k.takeOver), apply.ReleaseOptions{}, apply.Released, 1)
		b.same("fields after the release", before, b.values(k.all()...))
		b.managers(k.field, stock)
		b.remembered()
		b.owned()
	})
}

// Between reading the object and any of our requests a person writes the field: theirs stays.
func TestUnsetLosesTheRace(t *testing.T) {
	onBothKinds(t, func(t *testing.T, k kindOf) {
		for at := 1; at <= k.requests; at++ {
			b := k.bench(t, stock)
			a := b.applier(k.takeOver)
			sent := 0
			interfere := func() {
				if sent++; sent == at {
					b.merge(person, k.with(k.again))
				}
			}
			a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					interfere()
					return c.Apply(ctx, obj, opts...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					interfere()
					return c.Patch(ctx, obj, p, opts...)
				},
			})
			outcome, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), k.all()...)
			if !errors.Is(err, apply.ErrStale) && outcome.Kind != apply.Conflicted {
				t.Fatalf("before request %d: %+v, %v, want ErrStale or a conflict", at, outcome, err)
			}
			text, err := json.Marshal(b.values(k.field)[k.field])
			if err != nil || string(text) != k.again {
				t.Errorf("before request %d: the person's value is now %s, %v", at, text, err)
			}
			b.managers(k.field, person)
			b.release(b.applier(k.takeOver), apply.ReleaseOptions{}, map[bool]apply.Kind{true: apply.Released, false: apply.Unchanged}[at == 3], map[bool]int{true: 2}[at == 3])
			b.managers(k.field, person)
			b.spec(int64(2), "replicas")
		}
	})
}

// A custom resource's replicas: a scalar goes like a list.
func TestUnsetScalarOfCustomResource(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.applyWithout(a, b.live(), map[string]any{"domain": "apps.example.org"}, []string{".spec.replicas"}, apply.Applied, 3)
	b.spec(nil, "replicas")
	// Now the intent wants a value again; the old one is still the one to put back.
	b.apply(a, replicas(1), apply.Applied, 1)
	b.remembered(patch.Replaced{Field: ".spec.replicas", Manager: stock, Value: []byte("2")})
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.spec(int64(2), "replicas")
	b.managers(".spec.replicas", stock)
}

// What nobody can make absent is said before anything is written, as far as the object shows it.
func TestUnsetRefused(t *testing.T) {
	k := kinds["built-in type"]
	tests := map[string]struct {
		field  string
		want   error
		writes bool
	}{
		"no path":                     {field: "spec", want: ownership.ErrFieldPath},
		"in the intent":               {field: ".spec.minReadySeconds", want: apply.ErrIntent},
		"below a value of the intent": {field: ".spec.minReadySeconds.below", want: apply.ErrIntent},
		"a map of many owners":        {field: ".spec.template.metadata.labels", want: apply.ErrUnset},
		"part of an atomic map":       {field: ".spec.template.spec.nodeSelector.os", want: apply.ErrUnset},
		"a field with a default":      {field: ".spec.replicas", want: apply.ErrUnset, writes: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := k.bench(t, stock)
			writes := b.server.WritesDuring(t, b.namespace, func() {
				outcome, err := b.applier(k.takeOver).Apply(t.Context(), b.live(), b.intent(map[string]any{"minReadySeconds": int64(1)}), test.field)
				if !errors.Is(err, test.want) || outcome.Kind != apply.Refused {
					t.Errorf("got %+v, %v, want %v", outcome, err, test.want)
				}
			})
			if len(writes) > 0 != test.writes {
				t.Errorf("writes: %v", writes)
			}
		})
	}
}
