// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
)

// A Deployment of a stock operator, with fields that must become absent.
const (
	stockDeployment = `{"replicas":2,"selector":{"matchLabels":{"app":"console"}},"template":{
		"metadata":{"labels":{"app":"console","component":"downloads"}},"spec":{
		"containers":[{"name":"c","image":"i"}],"nodeSelector":{"os":"linux"},"hostname":"h",
		"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"}]}}}}}`
	affinity     = ".spec.template.spec.affinity"
	antiAffinity = affinity + ".podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	nodeSelector = ".spec.template.spec.nodeSelector"
	hostname     = ".spec.template.spec.hostname"
	otherTerm    = `[{"topologyKey":"zone"}]`
)

var (
	others  = []string{nodeSelector, hostname}
	all     = []string{antiAffinity, nodeSelector, hostname}
	withMap = append(slices.Clone(all), affinity)
)

func withAntiAffinity(value string) string {
	return `{"spec":{"template":{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":` + value + `}}}}}}`
}

func newDeployment(t *testing.T, manager string) *environment {
	t.Helper()
	var spec map[string]any
	if err := json.Unmarshal([]byte(stockDeployment), &spec); err != nil {
		t.Fatal(err)
	}
	return newEnvironmentOf(t, deployment, manager, spec)
}

// newUnset returns a stock Deployment, an applier that may take its fields, and their values.
func newUnset(t *testing.T) (*environment, *apply.Applier, map[string]any) {
	t.Helper()
	b := newDeployment(t, stock)
	return b, b.applier(takeOver), b.values(withMap...)
}

// takeOver makes the fields and the replicas overridable.
func takeOver(a *apply.Applier) {
	a.Overridable = nil
	for _, field := range append(slices.Clone(all), ".spec.replicas") {
		a.Overridable = append(a.Overridable, apply.Overridable{Field: field, Manager: stock})
	}
}

func (b *environment) unset(a *apply.Applier, fields []string, want apply.Kind, requests int) apply.Outcome {
	b.Helper()
	return b.apply(a, replicas(1), want, requests, fields...)
}

func (b *environment) values(fields ...string) map[string]any {
	b.Helper()
	live, out := b.live(), map[string]any{}
	for _, field := range fields {
		value, found, err := unstructured.NestedFieldNoCopy(live.Object, strings.Split(field[1:], ".")...)
		b.must(err)
		if found {
			out[field] = value
		}
	}
	return out
}

func (b *environment) absent(fields ...string) {
	b.Helper()
	b.same("fields that must be absent", map[string]any{}, b.values(fields...))
}

// restored fails unless all fields have their values and managers from before.
func (b *environment) restored(before map[string]any) {
	b.Helper()
	b.same("fields after the release", before, b.values(withMap...))
	for _, field := range append(slices.Clone(withMap), ".spec.replicas") {
		b.managers(field, stock)
	}
	b.owned()
	b.replaced()
}

// Fields become absent, and the map around them if it is named, until the release restores them.
func TestUnset(t *testing.T) {
	for name, test := range map[string]struct {
		fields   []string
		requests int
		left     any
	}{
		"fields":             {all, 1, map[string]any{"podAntiAffinity": map[string]any{}}},
		"and the map around": {withMap, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b, a, before := newUnset(t)
			outcome := b.unset(a, test.fields, apply.Applied, test.requests)
			for _, field := range all {
				at := slices.IndexFunc(outcome.Changes, func(c ownership.Change) bool { return c.Field == field })
				if at < 0 {
					t.Fatalf("%s is not among the changes: %+v", field, outcome.Changes)
				}
				if c := outcome.Changes[at]; c.Desired != ownership.None || !c.Differs || c.Owner != stock || c.Live == ownership.None {
					t.Errorf("change of %s: %+v", field, c)
				}
			}
			b.absent(all...)
			b.spec(test.left, "template", "spec", "affinity")
			b.spec(int64(1), "replicas")

			// Fields stay absent also if they are not named.
			rest := func(n int64) {
				t.Helper()
				b.unchanged(func() {
					for _, fields := range [][]string{test.fields, nil, others} {
						for _, applier := range []*apply.Applier{a, b.applier(takeOver)} {
							outcome := b.apply(applier, replicas(n), apply.Unchanged, 0, fields...)
							if slices.ContainsFunc(outcome.Changes, func(c ownership.Change) bool { return c.Differs }) {
								t.Errorf("differs although the patch is in force: %+v", outcome.Changes)
							}
						}
					}
				})
			}
			rest(1)
			b.merge(person, `{"metadata":{"labels":{"a":"b"}}}`)
			rest(1)
			template := b.values(".spec.template")
			b.apply(a, replicas(3), apply.Applied, 1)
			b.same("the pod template after a later change", template, b.values(".spec.template"))
			rest(3)

			b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
			b.restored(before)
			b.unchanged(func() { b.release(a, apply.ReleaseOptions{}, apply.Unchanged, 0) })
		})
	}
}

// Maps that another client removes are not created again.
func TestUnsetInMapThatIsGone(t *testing.T) {
	b, a, before := newUnset(t)
	b.unset(a, all, apply.Applied, 1)
	b.merge(person, `{"spec":{"template":{"spec":{"affinity":null}}}}`)
	b.unchanged(func() {
		b.apply(a, replicas(1), apply.Unchanged, 0)
		b.apply(b.applier(takeOver), replicas(1), apply.Unchanged, 0)
	})
	b.release(b.applier(takeOver), apply.ReleaseOptions{}, apply.Released, 2)
	b.restored(before)
}

// A field of another client, alone or with an overridable manager, is a conflict.
func TestUnsetConflict(t *testing.T) {
	for name, create := range map[string]string{"a person's": person, "a person's and the stock operator's": stock} {
		t.Run(name, func(t *testing.T) {
			b := newDeployment(t, create)
			if create == stock {
				u := b.object()
				b.must(unstructured.SetNestedField(u.Object, b.values(antiAffinity)[antiAffinity], strings.Split(antiAffinity[1:], ".")...))
				b.must(b.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(person)))
			}
			a := b.applier(takeOver)
			b.unchanged(func() {
				for range 2 {
					outcome := b.apply(a, map[string]any{"minReadySeconds": int64(1)}, apply.Conflicted, 1, antiAffinity)
					if !slices.Contains(outcome.Conflicts, apply.Conflict{Field: antiAffinity, Manager: person}) {
						t.Errorf("conflicts: %+v, want the anti-affinity by %s", outcome.Conflicts, person)
					}
				}
			})
			b.replaced()
			byForce := b.applier(forced)
			b.unset(byForce, []string{antiAffinity}, apply.Applied, 1)
			b.absent(antiAffinity)
			b.release(byForce, apply.ReleaseOptions{}, apply.Released, 2)
			b.same("number of values after the release", 1, len(b.values(antiAffinity)))
		})
	}
}

// newOwn returns a person's Deployment with a node selector that only the module owns.
func newOwn(t *testing.T) (*environment, *apply.Applier) {
	t.Helper()
	b := newDeployment(t, person)
	b.merge(person, `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	a := b.applier()
	b.apply(a, map[string]any{"template": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"a": "b"}}}}, apply.Applied, 1)
	return b, a
}

// A field without another owner becomes absent without a conflict or a replaced value.
func TestUnsetOwn(t *testing.T) {
	b, a := newOwn(t)
	unset := func(want apply.Kind, requests int) {
		t.Helper()
		b.apply(a, map[string]any{"minReadySeconds": int64(1)}, want, requests, nodeSelector)
		b.absent(nodeSelector)
		b.replaced()
	}
	unset(apply.Applied, 1)
	unset(apply.Unchanged, 0)
}

// A concurrent write of a person is not overwritten.
func TestUnsetOwnLosesTheRace(t *testing.T) {
	b, a := newOwn(t)
	b.intercept(a, func(string) error {
		b.merge(person, `{"spec":{"template":{"spec":{"nodeSelector":{"a":"other"}}}}}`)
		return nil
	})
	outcome := b.apply(a, map[string]any{"minReadySeconds": int64(1)}, apply.Conflicted, 1, nodeSelector)
	b.same("conflicts", []apply.Conflict{{Field: nodeSelector, Manager: person}}, outcome.Conflicts)
	b.spec(map[string]any{"a": "other"}, "template", "spec", "nodeSelector")
	b.managers(nodeSelector, person)
}

func TestUnsetLaterIsNoRevert(t *testing.T) {
	b, a, before := newUnset(t)
	b.unset(a, others, apply.Applied, 1)
	b.apply(a, replicas(1), apply.Unchanged, 0)
	b.unset(a, []string{antiAffinity}, apply.Applied, 1)
	b.absent(all...)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.restored(before)
}

// A later intent sets fields that were made absent. The release restores the values from before.
func TestUnsetThenIntended(t *testing.T) {
	terms := map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"topologyKey": "zone"}}}
	values := map[string]any{
		"nodeSelector": map[string]any{"a": "b"}, "hostname": "set", "affinity": map[string]any{"podAntiAffinity": terms},
	}
	for name, test := range map[string]struct {
		fields   []string
		requests int
		intended map[string]any // of the pod
	}{
		"fields":                       {all, 1, values},
		"and the map around":           {withMap, 2, values},
		"another field in the map":     {withMap, 2, map[string]any{"affinity": map[string]any{"podAffinity": terms}}},
		"one field, the others absent": {withMap, 2, map[string]any{"hostname": "set"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, a, before := newUnset(t)
			b.unset(a, test.fields, apply.Applied, test.requests)
			kept, err := patch.ReadReplaced(b.live().GetAnnotations(), module)
			b.must(err)
			spec := map[string]any{"replicas": int64(1), "template": map[string]any{"spec": test.intended}}
			b.apply(a, spec, apply.Applied, 1)
			for _, field := range []string{"nodeSelector", "hostname", "affinity"} {
				b.spec(test.intended[field], "template", "spec", field)
			}
			b.replaced(kept...)
			b.apply(a, spec, apply.Unchanged, 0)
			b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
			b.restored(before)
		})
	}
}

func TestUnsetRevert(t *testing.T) {
	for name, test := range map[string]struct {
		fields   []string
		requests int
		later    bool
	}{
		"field":                     {[]string{antiAffinity}, 1, false},
		"map":                       {[]string{antiAffinity, affinity}, 2, false},
		"map, after a later change": {[]string{antiAffinity, affinity}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, clock := newDeployment(t, stock), newClock()
			a := b.applier(takeOver, withClock(clock))
			b.unset(a, test.fields, apply.Applied, test.requests)
			if test.later {
				b.apply(a, replicas(3), apply.Applied, 1)
				b.apply(a, replicas(1), apply.Applied, 1)
			}
			b.apply(a, replicas(1), apply.Unchanged, 0)
			for _, backoff := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
				b.merge(stock, withAntiAffinity(otherTerm))
				b.unchanged(func() {
					outcome := b.unset(a, test.fields, apply.Withheld, 0)
					b.same("reverters", []string{stock}, outcome.RevertedBy)
					b.same("backoff", backoff, outcome.RetryAfter)
				})
				clock.SetTime(clock.Now().Add(backoff))
				b.unset(a, test.fields, apply.Applied, test.requests)
				b.absent(test.fields...)
				b.apply(a, replicas(1), apply.Unchanged, 0)
			}
			b.replaced(stockReplicas("2"), patch.Replaced{Field: antiAffinity, Manager: stock, Value: []byte(otherTerm)})
		})
	}
}

// A value of a person in an absent field is a conflict at once, and the release keeps it.
func TestUnsetThenPersonsValue(t *testing.T) {
	b, a, _ := newUnset(t)
	b.unset(a, []string{antiAffinity}, apply.Applied, 1)
	b.merge(person, withAntiAffinity(otherTerm))
	written := b.values(antiAffinity)
	b.unchanged(func() {
		outcome := b.unset(a, []string{antiAffinity}, apply.Conflicted, 0)
		b.same("conflicts", []apply.Conflict{{Field: antiAffinity, Manager: person}}, outcome.Conflicts)
	})
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.same("the person's value", written, b.values(antiAffinity))
	b.managers(antiAffinity, person)
	b.managers(".spec.replicas", stock)
	b.replaced()
}

func TestUnsetReleaseRestoresSelected(t *testing.T) {
	b, a, _ := newUnset(t)
	b.unset(a, []string{antiAffinity}, apply.Applied, 1)
	b.release(a, apply.ReleaseOptions{Restore: func(r patch.Replaced) bool { return r.Field == ".spec.replicas" }}, apply.Released, 2)
	b.absent(antiAffinity)
	b.spec(int64(2), "replicas")
	b.replaced()
	b.owned()
}

func TestUnsetDryRun(t *testing.T) {
	b := newDeployment(t, stock)
	dry := b.applier(takeOver, dryRun)
	b.unchanged(func() {
		for range 2 {
			b.unset(dry, withMap, apply.WouldApply, 1)
		}
	})
	b.unset(b.applier(takeOver), withMap, apply.Applied, 2)
	b.unset(dry, withMap, apply.Unchanged, 0)
	b.unchanged(func() { b.release(dry, apply.ReleaseOptions{}, apply.WouldRelease, 2) })
}

func TestUnsetStaleCache(t *testing.T) {
	b, a, _ := newUnset(t)
	stale := b.live()
	b.applyTo(a, stale, replicas(1), apply.Applied, 1, all...)
	b.applyTo(a, stale, replicas(1), apply.Unchanged, 0, all...)
	b.apply(a, replicas(1), apply.Unchanged, 0)
}

// The next process completes or releases what a crash between the two requests has left.
func TestUnsetInterrupted(t *testing.T) {
	for name, test := range map[string]struct {
		fields  []string
		release bool
	}{
		"all of it otherTerm": {fields: withMap}, "the map alone": {fields: []string{affinity}}, "release": {release: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, a, before := newUnset(t)
			_, err := b.crash("patch", takeOver).Apply(t.Context(), b.live(), b.intent(replicas(1)), withMap...)
			b.fails("applying", err, errCrash)
			b.absent(all...)
			b.spec(map[string]any{"podAntiAffinity": map[string]any{}}, "template", "spec", "affinity")
			if !test.release {
				b.unset(a, test.fields, apply.Applied, 1) // the first request is not repeated
				b.absent(withMap...)
				b.unset(a, nil, apply.Unchanged, 0)
			}
			_, err = a.Release(t.Context(), b.live(), apply.ReleaseOptions{})
			b.must(err)
			b.restored(before)
		})
	}
}

func TestUnsetReleaseInterrupted(t *testing.T) {
	b := newDeployment(t, stock)
	before := b.values(withMap...)
	b.unset(b.applier(takeOver), all, apply.Applied, 1)
	_, err := b.crash("apply", takeOver).Release(t.Context(), b.live(), apply.ReleaseOptions{})
	b.fails("releasing", err, errCrash)
	b.release(b.applier(takeOver), apply.ReleaseOptions{}, apply.Released, 1)
	b.restored(before)
}

func TestUnsetLosesTheRace(t *testing.T) {
	b := newDeployment(t, stock)
	a := b.intercept(b.applier(takeOver), func(string) error { b.merge(person, withAntiAffinity(otherTerm)); return nil })
	_, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), all...)
	b.fails("applying", err, apply.ErrStale)
	b.same("the person's value", []any{map[string]any{"topologyKey": "zone"}}, b.values(antiAffinity)[antiAffinity])
	b.release(b.applier(takeOver), apply.ReleaseOptions{}, apply.Unchanged, 0)
	b.managers(antiAffinity, person)
	b.spec(int64(2), "replicas")
}

// A concurrent write of a person in the map is not overwritten.
func TestUnsetMapLosesTheRace(t *testing.T) {
	nodes := map[string]any{"nodeAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
		"weight":     int64(1),
		"preference": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Exists"}}},
	}}}}
	text, err := json.Marshal(nodes)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		verb  string
		first []string // unset by an earlier call, so that no field is left to force
		again int      // requests of the next call
	}{
		"before the intent is applied": {verb: "apply", first: all, again: 2},
		"before the map is removed":    {verb: "patch", again: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newDeployment(t, stock)
			if test.first != nil {
				b.apply(b.applier(takeOver), replicas(3), apply.Applied, 1, test.first...)
			}
			a := b.intercept(b.applier(takeOver), func(verb string) error {
				if verb == test.verb {
					b.merge(person, `{"spec":{"template":{"spec":{"affinity":`+string(text)+`}}}}`)
				}
				return nil
			})
			_, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)), withMap...)
			b.fails("applying", err, apply.ErrStale)
			b.managers(affinity+".nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", person)
			a = b.applier(takeOver)
			b.unset(a, []string{affinity + ".podAntiAffinity"}, apply.Applied, test.again)
			b.spec(nodes, "template", "spec", "affinity")
			b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
			b.same("number of values after the release", 1, len(b.values(antiAffinity)))
		})
	}
}

// A field that cannot be made absent is rejected before a write if the object shows it.
func TestUnsetRefused(t *testing.T) {
	for name, test := range map[string]struct {
		field  string
		want   error
		writes bool
	}{
		"no path":                     {field: "spec", want: ownership.ErrFieldPath},
		"in the intent":               {field: ".spec.minReadySeconds", want: apply.ErrIntent},
		"below a value of the intent": {field: ".spec.minReadySeconds.below", want: apply.ErrIntent},
		"a map of many owners":        {field: ".spec.template.metadata.labels", want: apply.ErrUnset},
		"a map with something in it":  {field: affinity, want: apply.ErrUnset},
		"part of an atomic map":       {field: nodeSelector + ".os", want: apply.ErrUnset},
		"a field with a default":      {field: ".spec.replicas", want: apply.ErrUnset, writes: true},
	} {
		b := newDeployment(t, stock)
		writes := b.server.WritesDuring(t, b.namespace, func() {
			outcome, err := b.applier(takeOver).Apply(t.Context(), b.live(), b.intent(map[string]any{"minReadySeconds": int64(1)}), test.field)
			b.fails(name, err, test.want)
			b.same(name, apply.Failed, outcome.Kind)
		})
		if len(writes) > 0 != test.writes {
			t.Errorf("%s: writes: %v", name, writes)
		}
	}
	b := newEnvironment(t, stock, map[string]any{"replicas": int64(2), "domain": "apps.example.org"})
	b.unchanged(func() {
		_, err := b.applier().Apply(t.Context(), b.live(), b.intent(map[string]any{"domain": "apps.example.org"}), ".spec.replicas")
		if !apierrors.IsInvalid(err) {
			t.Errorf("a field of a custom resource: %v, want Invalid", err)
		}
	})
}
