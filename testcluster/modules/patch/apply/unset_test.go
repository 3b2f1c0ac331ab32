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

func newDeployment(t *testing.T, manager string) *objectFixture {
	t.Helper()
	var spec map[string]any
	if err := json.Unmarshal([]byte(stockDeployment), &spec); err != nil {
		t.Fatal(err)
	}
	return newFixtureOf(t, deployment, manager, spec)
}

// newUnset returns a stock Deployment, an applier that may take its fields, and their values.
func newUnset(t *testing.T) (*objectFixture, *apply.Applier, map[string]any) {
	t.Helper()
	o := newDeployment(t, stock)
	return o, o.applier(takeOver), o.values(withMap...)
}

// takeOver makes the fields and the replicas overridable.
func takeOver(a *apply.Applier) {
	a.Overridable = nil
	for _, field := range append(slices.Clone(all), ".spec.replicas") {
		a.Overridable = append(a.Overridable, apply.Overridable{Field: field, Manager: stock})
	}
}

func (o *objectFixture) unset(a *apply.Applier, fields []string, want apply.Kind, requests int) apply.Outcome {
	o.Helper()
	return o.apply(a, replicas(1), want, requests, fields...)
}

func (o *objectFixture) values(fields ...string) map[string]any {
	o.Helper()
	live, out := o.live(), map[string]any{}
	for _, field := range fields {
		value, found, err := unstructured.NestedFieldNoCopy(live.Object, strings.Split(field[1:], ".")...)
		o.must(err)
		if found {
			out[field] = value
		}
	}
	return out
}

func (o *objectFixture) absent(fields ...string) {
	o.Helper()
	o.same("fields that must be absent", map[string]any{}, o.values(fields...))
}

// restored fails unless all fields have their values and managers from before.
func (o *objectFixture) restored(before map[string]any) {
	o.Helper()
	o.same("fields after the release", before, o.values(withMap...))
	for _, field := range append(slices.Clone(withMap), ".spec.replicas") {
		o.managers(field, stock)
	}
	o.owned()
	o.replaced()
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
			o, a, before := newUnset(t)
			outcome := o.unset(a, test.fields, apply.Applied, test.requests)
			for _, field := range all {
				at := slices.IndexFunc(outcome.Changes, func(c ownership.Change) bool { return c.Field == field })
				if at < 0 {
					t.Fatalf("%s is not among the changes: %+v", field, outcome.Changes)
				}
				if c := outcome.Changes[at]; c.Desired != ownership.None || !c.Differs || c.Owner != stock || c.Live == ownership.None {
					t.Errorf("change of %s: %+v", field, c)
				}
			}
			o.absent(all...)
			o.spec(test.left, "template", "spec", "affinity")
			o.spec(int64(1), "replicas")

			// Fields stay absent also if they are not named.
			rest := func(n int64) {
				t.Helper()
				o.unchanged(func() {
					for _, fields := range [][]string{test.fields, nil, others} {
						for _, applier := range []*apply.Applier{a, o.applier(takeOver)} {
							outcome := o.apply(applier, replicas(n), apply.Unchanged, 0, fields...)
							if slices.ContainsFunc(outcome.Changes, func(c ownership.Change) bool { return c.Differs }) {
								t.Errorf("differs although the patch is in force: %+v", outcome.Changes)
							}
						}
					}
				})
			}
			rest(1)
			o.merge(person, `{"metadata":{"labels":{"a":"b"}}}`)
			rest(1)
			template := o.values(".spec.template")
			o.apply(a, replicas(3), apply.Applied, 1)
			o.same("the pod template after a later change", template, o.values(".spec.template"))
			rest(3)

			o.release(a, apply.ReleaseOptions{}, apply.Released, 2)
			o.restored(before)
			o.unchanged(func() { o.release(a, apply.ReleaseOptions{}, apply.Unchanged, 0) })
		})
	}
}

// Maps that another client removes are not created again.
func TestUnsetInMapThatIsGone(t *testing.T) {
	o, a, before := newUnset(t)
	o.unset(a, all, apply.Applied, 1)
	o.merge(person, `{"spec":{"template":{"spec":{"affinity":null}}}}`)
	o.unchanged(func() {
		o.apply(a, replicas(1), apply.Unchanged, 0)
		o.apply(o.applier(takeOver), replicas(1), apply.Unchanged, 0)
	})
	o.release(o.applier(takeOver), apply.ReleaseOptions{}, apply.Released, 2)
	o.restored(before)
}

// A field of another client, alone or with an overridable manager, is a conflict.
func TestUnsetConflict(t *testing.T) {
	for name, create := range map[string]string{"a person's": person, "a person's and the stock operator's": stock} {
		t.Run(name, func(t *testing.T) {
			o := newDeployment(t, create)
			if create == stock {
				u := o.object()
				o.must(unstructured.SetNestedField(u.Object, o.values(antiAffinity)[antiAffinity], strings.Split(antiAffinity[1:], ".")...))
				o.must(o.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(person)))
			}
			a := o.applier(takeOver)
			o.unchanged(func() {
				for range 2 {
					outcome := o.apply(a, map[string]any{"minReadySeconds": int64(1)}, apply.Conflicted, 1, antiAffinity)
					if !slices.Contains(outcome.Conflicts, apply.Conflict{Field: antiAffinity, Manager: person}) {
						t.Errorf("conflicts: %+v, want the anti-affinity by %s", outcome.Conflicts, person)
					}
				}
			})
			o.replaced()
			byForce := o.applier(forced)
			o.unset(byForce, []string{antiAffinity}, apply.Applied, 1)
			o.absent(antiAffinity)
			o.release(byForce, apply.ReleaseOptions{}, apply.Released, 2)
			o.same("number of values after the release", 1, len(o.values(antiAffinity)))
		})
	}
}

// newOwn returns a person's Deployment with a node selector that only the module owns.
func newOwn(t *testing.T) (*objectFixture, *apply.Applier) {
	t.Helper()
	o := newDeployment(t, person)
	o.merge(person, `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	a := o.applier()
	o.apply(a, map[string]any{"template": map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"a": "b"}}}}, apply.Applied, 1)
	return o, a
}

// A field without another owner becomes absent without a conflict or a replaced value.
func TestUnsetOwn(t *testing.T) {
	o, a := newOwn(t)
	unset := func(want apply.Kind, requests int) {
		t.Helper()
		o.apply(a, map[string]any{"minReadySeconds": int64(1)}, want, requests, nodeSelector)
		o.absent(nodeSelector)
		o.replaced()
	}
	unset(apply.Applied, 1)
	unset(apply.Unchanged, 0)
}

// A concurrent write of a person is not overwritten.
func TestUnsetOwnLosesTheRace(t *testing.T) {
	o, a := newOwn(t)
	o.intercept(a, func(string) error {
		o.merge(person, `{"spec":{"template":{"spec":{"nodeSelector":{"a":"other"}}}}}`)
		return nil
	})
	outcome := o.apply(a, map[string]any{"minReadySeconds": int64(1)}, apply.Conflicted, 1, nodeSelector)
	o.same("conflicts", []apply.Conflict{{Field: nodeSelector, Manager: person}}, outcome.Conflicts)
	o.spec(map[string]any{"a": "other"}, "template", "spec", "nodeSelector")
	o.managers(nodeSelector, person)
}

func TestUnsetLaterIsNoRevert(t *testing.T) {
	o, a, before := newUnset(t)
	o.unset(a, others, apply.Applied, 1)
	o.apply(a, replicas(1), apply.Unchanged, 0)
	o.unset(a, []string{antiAffinity}, apply.Applied, 1)
	o.absent(all...)
	o.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	o.restored(before)
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
			o, a, before := newUnset(t)
			o.unset(a, test.fields, apply.Applied, test.requests)
			kept, err := patch.ReadReplaced(o.live(), module)
			o.must(err)
			spec := map[string]any{"replicas": int64(1), "template": map[string]any{"spec": test.intended}}
			o.apply(a, spec, apply.Applied, 1)
			for _, field := range []string{"nodeSelector", "hostname", "affinity"} {
				o.spec(test.intended[field], "template", "spec", field)
			}
			o.replaced(kept...)
			o.apply(a, spec, apply.Unchanged, 0)
			o.release(a, apply.ReleaseOptions{}, apply.Released, 2)
			o.restored(before)
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
			o, clock := newDeployment(t, stock), newClock()
			a := o.applier(takeOver, withClock(clock))
			o.unset(a, test.fields, apply.Applied, test.requests)
			if test.later {
				o.apply(a, replicas(3), apply.Applied, 1)
				o.apply(a, replicas(1), apply.Applied, 1)
			}
			o.apply(a, replicas(1), apply.Unchanged, 0)
			for _, backoff := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
				o.merge(stock, withAntiAffinity(otherTerm))
				o.unchanged(func() {
					outcome := o.unset(a, test.fields, apply.Withheld, 0)
					o.same("reverters", []string{stock}, outcome.RevertedBy)
					o.same("backoff", backoff, outcome.RetryAfter)
				})
				clock.SetTime(clock.Now().Add(backoff))
				o.unset(a, test.fields, apply.Applied, test.requests)
				o.absent(test.fields...)
				o.apply(a, replicas(1), apply.Unchanged, 0)
			}
			o.replaced(stockReplicas("2"), patch.Replaced{Field: antiAffinity, Manager: stock, Value: []byte(otherTerm)})
		})
	}
}

// A value of a person in an absent field is a conflict at once, and the release keeps it.
func TestUnsetThenPersonsValue(t *testing.T) {
	o, a, _ := newUnset(t)
	o.unset(a, []string{antiAffinity}, apply.Applied, 1)
	o.merge(person, withAntiAffinity(otherTerm))
	written := o.values(antiAffinity)
	o.unchanged(func() {
		outcome := o.unset(a, []string{antiAffinity}, apply.Conflicted, 0)
		o.same("conflicts", []apply.Conflict{{Field: antiAffinity, Manager: person}}, outcome.Conflicts)
	})
	o.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	o.same("the person's value", written, o.values(antiAffinity))
	o.managers(antiAffinity, person)
	o.managers(".spec.replicas", stock)
	o.replaced()
}

func TestUnsetReleaseRestoresSelected(t *testing.T) {
	o, a, _ := newUnset(t)
	o.unset(a, []string{antiAffinity}, apply.Applied, 1)
	o.release(a, apply.ReleaseOptions{Restore: func(r patch.Replaced) bool { return r.Field == ".spec.replicas" }}, apply.Released, 2)
	o.absent(antiAffinity)
	o.spec(int64(2), "replicas")
	o.replaced()
	o.owned()
}

func TestUnsetDryRun(t *testing.T) {
	o := newDeployment(t, stock)
	dry := o.applier(takeOver, dryRun)
	o.unchanged(func() {
		for range 2 {
			o.unset(dry, withMap, apply.WouldApply, 1)
		}
	})
	o.unset(o.applier(takeOver), withMap, apply.Applied, 2)
	o.unset(dry, withMap, apply.Unchanged, 0)
	o.unchanged(func() { o.release(dry, apply.ReleaseOptions{}, apply.WouldRelease, 2) })
}

func TestUnsetStaleCache(t *testing.T) {
	o, a, _ := newUnset(t)
	stale := o.live()
	o.applyTo(a, stale, replicas(1), apply.Applied, 1, all...)
	o.applyTo(a, stale, replicas(1), apply.Unchanged, 0, all...)
	o.apply(a, replicas(1), apply.Unchanged, 0)
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
			o, a, before := newUnset(t)
			_, err := o.crash("patch", takeOver).Apply(t.Context(), o.live(), o.intent(replicas(1)), withMap...)
			o.fails("applying", err, errCrash)
			o.absent(all...)
			o.spec(map[string]any{"podAntiAffinity": map[string]any{}}, "template", "spec", "affinity")
			if !test.release {
				o.unset(a, test.fields, apply.Applied, 1) // the first request is not repeated
				o.absent(withMap...)
				o.unset(a, nil, apply.Unchanged, 0)
			}
			_, err = a.Release(t.Context(), o.live(), apply.ReleaseOptions{})
			o.must(err)
			o.restored(before)
		})
	}
}

func TestUnsetReleaseInterrupted(t *testing.T) {
	o := newDeployment(t, stock)
	before := o.values(withMap...)
	o.unset(o.applier(takeOver), all, apply.Applied, 1)
	_, err := o.crash("apply", takeOver).Release(t.Context(), o.live(), apply.ReleaseOptions{})
	o.fails("releasing", err, errCrash)
	o.release(o.applier(takeOver), apply.ReleaseOptions{}, apply.Released, 1)
	o.restored(before)
}

func TestUnsetLosesTheRace(t *testing.T) {
	o := newDeployment(t, stock)
	a := o.intercept(o.applier(takeOver), func(string) error { o.merge(person, withAntiAffinity(otherTerm)); return nil })
	_, err := a.Apply(t.Context(), o.live(), o.intent(replicas(1)), all...)
	o.fails("applying", err, apply.ErrStale)
	o.same("the person's value", []any{map[string]any{"topologyKey": "zone"}}, o.values(antiAffinity)[antiAffinity])
	o.release(o.applier(takeOver), apply.ReleaseOptions{}, apply.Unchanged, 0)
	o.managers(antiAffinity, person)
	o.spec(int64(2), "replicas")
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
			o := newDeployment(t, stock)
			if test.first != nil {
				o.apply(o.applier(takeOver), replicas(3), apply.Applied, 1, test.first...)
			}
			a := o.intercept(o.applier(takeOver), func(verb string) error {
				if verb == test.verb {
					o.merge(person, `{"spec":{"template":{"spec":{"affinity":`+string(text)+`}}}}`)
				}
				return nil
			})
			_, err := a.Apply(t.Context(), o.live(), o.intent(replicas(1)), withMap...)
			o.fails("applying", err, apply.ErrStale)
			o.managers(affinity+".nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", person)
			a = o.applier(takeOver)
			o.unset(a, []string{affinity + ".podAntiAffinity"}, apply.Applied, test.again)
			o.spec(nodes, "template", "spec", "affinity")
			o.release(a, apply.ReleaseOptions{}, apply.Released, 2)
			o.same("number of values after the release", 1, len(o.values(antiAffinity)))
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
		o := newDeployment(t, stock)
		writes := o.server.WritesDuring(t, o.namespace, func() {
			outcome, err := o.applier(takeOver).Apply(t.Context(), o.live(), o.intent(map[string]any{"minReadySeconds": int64(1)}), test.field)
			o.fails(name, err, test.want)
			o.same(name, apply.Failed, outcome.Kind)
		})
		if len(writes) > 0 != test.writes {
			t.Errorf("%s: writes: %v", name, writes)
		}
	}
	o := newFixture(t, stock, map[string]any{"replicas": int64(2), "domain": "apps.example.org"})
	o.unchanged(func() {
		_, err := o.applier().Apply(t.Context(), o.live(), o.intent(map[string]any{"domain": "apps.example.org"}), ".spec.replicas")
		if !apierrors.IsInvalid(err) {
			t.Errorf("a field of a custom resource: %v, want Invalid", err)
		}
	})
}
