// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
)

// TestConflict shows R-SNO-5 (U-SSA-1): a field of another client is a conflict, and nothing is written.
func TestConflict(t *testing.T) {
	infra := map[string]any{"nodePlacement": map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{"infra": ""}}}}
	for name, test := range map[string]struct {
		create    string
		spec      map[string]any
		alsoBy    string
		conflicts []apply.Conflict
	}{
		"overridable manager, another field": {stock, infra, "", []apply.Conflict{{Field: ".spec.nodePlacement.nodeSelector", Manager: stock}}},
		"another manager, overridable field": {person, replicas(2), "", []apply.Conflict{{Field: ".spec.replicas", Manager: person}}},
		"both, each with a field": {stock, replicas(2), person,
			[]apply.Conflict{{Field: ".spec.nodePlacement.nodeSelector", Manager: person}, {Field: ".spec.replicas", Manager: stock}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newFixture(t, test.create, test.spec)
			if test.alsoBy != "" {
				o.merge(test.alsoBy, `{"spec":{"nodePlacement":{"nodeSelector":{"matchLabels":{"infra":""}}}}}`)
			}
			before := o.live().Object["spec"]
			a := o.applier()
			for range 2 {
				o.unchanged(func() { o.same("conflicts", test.conflicts, o.apply(a, pinned(1), apply.Conflicted, 1).Conflicts) })
			}
			o.same("spec", before, o.live().Object["spec"])
			o.owned()
			o.replaced()
		})
	}
}

// Forcing a field takes only that field, and the same request records its value (U-SSA-2).
func TestForceMovesOneField(t *testing.T) {
	o := newFixture(t, stock, map[string]any{"replicas": int64(2), "domain": "apps.example.org"})
	o.apply(o.applier(), pinned(1), apply.Applied, 1)
	o.managers(".spec.replicas", owner)
	o.managers(".spec.domain", stock)
	o.spec(int64(1), "replicas")
	o.replaced(stockReplicas("2"))
	o.owned(".metadata.annotations."+annotation, ".spec.replicas", ".spec.nodePlacement.nodeSelector", ".spec.nodePlacement.tolerations")
}

// TestEqualIntentSendsNothing shows R-SNO-4 (U-SSA-3): an intent in force is not sent again, by no process.
func TestEqualIntentSendsNothing(t *testing.T) {
	for create, n := range map[string]int64{stock: 2, person: 1} {
		t.Run(create, func(t *testing.T) {
			o := newFixture(t, create, replicas(n))
			a := o.applier()
			if outcome := o.apply(a, pinned(1), apply.Applied, 1); len(outcome.Changes) != 3 {
				t.Errorf("changes: %+v, want three", outcome.Changes)
			}
			o.unchanged(func() {
				o.apply(a, pinned(1), apply.Unchanged, 0)
				for _, change := range o.apply(o.applier(), pinned(1), apply.Unchanged, 0).Changes {
					if change.Differs {
						t.Errorf("differs although the patch is in force: %+v", change)
					}
				}
			})
			o.merge(person, `{"metadata":{"labels":{"a":"b"}},"spec":{"domain":"apps.example.org"}}`)
			o.apply(a, pinned(1), apply.Unchanged, 0)
		})
	}
}

// A value that the API server normalizes is not sent again.
func TestNormalizedValueSendsNothing(t *testing.T) {
	o := newDeployment(t, stock)
	a := o.applier()
	intent := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1000m"}}},
	}}}}
	o.apply(a, intent, apply.Applied, 1)
	o.apply(a, intent, apply.Unchanged, 0)
	o.merge(person, `{"metadata":{"labels":{"a":"b"}}}`)
	o.apply(a, intent, apply.Unchanged, 0)
	o.merge(person, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}}}}`)
	o.apply(a, intent, apply.Conflicted, 1) // only the API server knows the element's owners
}

// A dry run reports changes and writes nothing (U-SSA-4).
func TestDryRun(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	a := o.applier(dryRun)
	const selector = ".spec.nodePlacement.nodeSelector.matchLabels.node-role.kubernetes.io/master"
	const tolerations = `[{"effect":"NoSchedule","key":"node-role.kubernetes.io/master","operator":"Exists"}]`
	want := []ownership.Change{
		{Field: selector, Live: "-", Desired: `""`, Owner: "-", Differs: true},
		{Field: ".spec.nodePlacement.tolerations", Live: "-", Desired: tolerations, Owner: "-", Differs: true},
		{Field: ".spec.replicas", Live: "2", Desired: "1", Owner: stock, Differs: true},
	}
	o.unchanged(func() {
		for range 2 {
			o.same("changes", want, o.apply(a, pinned(1), apply.WouldApply, 1).Changes)
		}
	})
	o.apply(o.applier(), pinned(1), apply.Applied, 1)
	o.apply(a, pinned(1), apply.Unchanged, 0)
	o.unchanged(func() { o.release(a, apply.ReleaseOptions{}, apply.WouldRelease, 2) })
	o.spec(int64(1), "replicas")
}

// The API server's answer fills the configuration that was sent (U-SSA-5), which must not be the caller's.
func TestAnswerIsNotTheNextIntent(t *testing.T) {
	o := newFixture(t, person, map[string]any{"domain": "apps.example.org"})
	a, u := o.applier(), o.object()
	for _, n := range []int64{1, 2} {
		u.Object["spec"] = replicas(n)
		before := u.DeepCopy()
		if outcome, err := a.Apply(t.Context(), o.live(), client.ApplyConfigurationFromUnstructured(u)); err != nil || outcome.Kind != apply.Applied {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		o.same("the caller's intent", before.Object, u.Object)
		o.owned(".spec.replicas")
	}
	if value, found, _ := unstructured.NestedString(o.live().Object, "spec", "httpEmptyRequestsPolicy"); !found || value == "" {
		t.Error("the API server set no default, so nothing was tested")
	}
}

// A typed object claims every field that its type writes (U-SSA-6).
func TestTypedObjectClaimsMore(t *testing.T) {
	o := newFixture(t, person, map[string]any{"domain": "apps.example.org"})
	o.apply(o.applier(), replicas(1), apply.Applied, 1)
	o.owned(".spec.replicas")

	one := int32(1)
	typed := &operatorv1.IngressController{Spec: operatorv1.IngressControllerSpec{Replicas: &one}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	o.must(err)
	u := o.object()
	u.Object["spec"] = content["spec"]
	o.must(o.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("typed")))
	if got := ownedBy(t, o.live(), "typed"); len(got) <= 1 || !strings.Contains(strings.Join(got, " "), ".spec.tuningOptions") {
		t.Errorf("a typed object owns %v, want more than the intent", got)
	}
}

// A patch neither creates an object nor changes a recreated one (U-SSA-7), which has another version.
func TestGoneObjectIsNotCreated(t *testing.T) {
	for name, again := range map[string]bool{"deleted": false, "deleted and created again": true} {
		t.Run(name, func(t *testing.T) {
			want := apply.ErrGone
			if again {
				want = apply.ErrStale
			}
			o := newFixture(t, stock, replicas(2))
			o.apply(o.applier(), replicas(1), apply.Applied, 1)
			live := o.live()
			o.must(o.admin.Delete(t.Context(), o.object()))
			if again {
				o.create(stock, replicas(3))
			}
			fresh := o.applier()
			_, err := fresh.Apply(t.Context(), live, o.intent(map[string]any{"domain": "d"}))
			o.fails("applying", err, want)
			_, err = fresh.Apply(t.Context(), live, o.intent(replicas(7)))
			o.fails("forcing", err, want)
			_, err = fresh.Release(t.Context(), live, apply.ReleaseOptions{Restore: func(patch.Replaced) bool { return false }})
			o.fails("releasing", err, want)
			_, err = fresh.Release(t.Context(), live, apply.ReleaseOptions{})
			o.fails("releasing and restoring", err, want)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(ingressController)
			o.must(o.admin.List(t.Context(), list, client.InNamespace(o.namespace)))
			if again {
				o.spec(int64(3), "replicas")
				o.managers(".spec.replicas", stock)
			} else if len(list.Items) != 0 {
				t.Errorf("the object was created: %v", list.Items)
			}
		})
	}
}

func TestForceLosesTheRace(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	applies := 0
	a := o.intercept(o.applier(), func(string) error {
		if applies++; applies == 1 {
			o.merge(person, `{"spec":{"replicas":5}}`)
		}
		return nil
	})
	_, err := a.Apply(t.Context(), o.live(), o.intent(replicas(1)))
	o.fails("applying", err, apply.ErrStale)
	o.spec(int64(5), "replicas")
	o.managers(".spec.replicas", person)
	o.replaced()
	o.apply(o.applier(), replicas(1), apply.Conflicted, 1)
}

func TestStaleIsNotGone(t *testing.T) {
	modified := apierrors.NewConflict(schema.GroupResource{Resource: "ingresscontrollers"}, "squid", errors.New("the object has been modified"))
	if err := apply.StaleOrGone(modified); !errors.Is(err, apply.ErrStale) || errors.Is(err, apply.ErrGone) {
		t.Errorf("got %v, want ErrStale alone", err)
	}
}

func TestForbidden(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	a := o.applier()
	o.apply(a, replicas(1), apply.Applied, 1)
	a.Client = o.server.Client(t, o.namespace+"-unauthorized")
	o.unchanged(func() {
		if outcome, err := a.Apply(t.Context(), o.live(), o.intent(replicas(3))); !apierrors.IsForbidden(err) || outcome.Kind != apply.Failed {
			t.Errorf("applying: %+v, %v, want Forbidden", outcome, err)
		}
		if outcome, err := a.Release(t.Context(), o.live(), apply.ReleaseOptions{}); !apierrors.IsForbidden(err) || outcome.Kind != apply.Failed {
			t.Errorf("releasing: %+v, %v, want Forbidden", outcome, err)
		}
	})
}

func TestInvalidValueIsAnError(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	o.unchanged(func() {
		_, err := o.applier().Apply(t.Context(), o.live(), o.intent(map[string]any{"replicas": "many"}))
		if err == nil || !strings.Contains(err.Error(), "replicas") {
			t.Errorf("got %v, want an error about replicas", err)
		}
	})
}

func TestForceConflicts(t *testing.T) {
	spec := map[string]any{"replicas": int64(3),
		"nodePlacement": map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{"infra": ""}}}}
	o := newFixture(t, person, spec)
	a := o.applier(forced)
	o.apply(a, pinned(1), apply.Applied, 1)
	o.spec(pinned(1)["nodePlacement"], "nodePlacement")
	o.replaced(
		patch.Replaced{Field: ".spec.nodePlacement.nodeSelector", Manager: person, Value: []byte(`{"matchLabels":{"infra":""}}`)},
		patch.Replaced{Field: ".spec.replicas", Manager: person, Value: []byte("3")},
	)
	o.apply(a, pinned(1), apply.Unchanged, 0)
	o.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	o.spec(spec["nodePlacement"], "nodePlacement")
	o.spec(int64(3), "replicas")
	o.managers(".spec.nodePlacement.nodeSelector", person)
}

// The annotation may hold the only copy of a value. What a person wrote there is not restored, even if it can be read.
func TestDamagedAnnotationStopsEverything(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	a := o.applier()
	o.apply(a, replicas(1), apply.Applied, 1)
	for _, text := range []string{"[{", `[{\"field\":\".spec.replicas\",\"manager\":\"oc\",\"value\":7}]`} {
		o.merge(person, `{"metadata":{"annotations":{"`+annotation+`":"`+text+`"}}}`)
		o.nothingIsWritten(a)
	}
	o.merge(person, `{"metadata":{"annotations":{"`+annotation+`":null}}}`)
	o.release(a, apply.ReleaseOptions{}, apply.Released, 1)
}

func (o *objectFixture) nothingIsWritten(a *apply.Applier) {
	o.Helper()
	for _, applier := range []*apply.Applier{a, o.applier(), o.applier(forced)} {
		o.server.NoWrites(o, o.namespace, func() {
			_, err := applier.Apply(o.Context(), o.live(), o.intent(pinned(1)))
			o.fails("applying", err, patch.ErrReplacedAnnotation)
			_, err = applier.Release(o.Context(), o.live(), apply.ReleaseOptions{})
			o.fails("releasing", err, patch.ErrReplacedAnnotation)
		})
	}
}

// Invalid arguments are rejected before a request is sent.
func TestBadArguments(t *testing.T) {
	o := newFixture(t, stock, replicas(2))
	intent := o.intent(replicas(1))
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		intent runtime.ApplyConfiguration
	}{
		"no uid":            {func(u *unstructured.Unstructured) { u.SetUID("") }, intent},
		"no kind":           {func(u *unstructured.Unstructured) { u.SetKind("") }, intent},
		"another name":      {func(u *unstructured.Unstructured) { u.SetName("other") }, intent},
		"another namespace": {func(u *unstructured.Unstructured) { u.SetNamespace("other") }, intent},
		"another kind":      {func(*unstructured.Unstructured) {}, appsv1ac.Deployment("default", o.namespace)},
	} {
		o.server.NoWrites(t, o.namespace, func() {
			live := o.live()
			test.change(live)
			_, err := o.applier().Apply(t.Context(), live, test.intent)
			o.fails(name, err, apply.ErrIntent)
		})
	}
}

type recorder map[string]int

func (r recorder) RecordApply(module string, kind apply.Kind) { r[module+" "+string(kind)]++ }
func (r recorder) RecordConflict(module, fieldManager string) { r[module+" over "+fieldManager]++ }

func TestRecorder(t *testing.T) {
	o := newFixture(t, person, replicas(2))
	recorded := recorder{}
	a := o.applier(func(a *apply.Applier) { a.Recorder = recorded })
	o.apply(a, replicas(1), apply.Conflicted, 1)
	o.apply(a, replicas(2), apply.Applied, 1)
	o.apply(a, replicas(2), apply.Unchanged, 0)
	o.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	_, err := a.Apply(t.Context(), o.object(), o.intent(replicas(1)))
	o.fails("an object that was not read", err, apply.ErrIntent)
	o.same("recorded", recorder{
		"sample conflict": 1, "sample over oc": 1, "sample applied": 1, "sample unchanged": 1, "sample released": 1, "sample error": 1,
	}, recorded)
}

// An intent with a key of an atomic map takes the whole map, only from an overridable manager.
func TestPartOfAnAtomicValue(t *testing.T) {
	const selector = ".spec.template.spec.nodeSelector"
	intent := map[string]any{"template": map[string]any{"spec": map[string]any{
		"nodeSelector": map[string]any{"os": "linux", "node-role.kubernetes.io/master": ""},
	}}}
	o := newDeployment(t, stock)
	o.apply(o.applier(takeOver), intent, apply.Applied, 1)
	o.replaced(patch.Replaced{Field: selector, Manager: stock, Value: []byte(`{"os":"linux"}`)})
	o.managers(selector, owner)
	o.apply(o.applier(takeOver), intent, apply.Unchanged, 0)

	o = newDeployment(t, person)
	o.apply(o.applier(takeOver), intent, apply.Conflicted, 1)
	o.managers(selector, person)
}
