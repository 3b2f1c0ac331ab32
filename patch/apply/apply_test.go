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
			b := newEnvironment(t, test.create, test.spec)
			if test.alsoBy != "" {
				b.merge(test.alsoBy, `{"spec":{"nodePlacement":{"nodeSelector":{"matchLabels":{"infra":""}}}}}`)
			}
			before := b.live().Object["spec"]
			a := b.applier()
			for range 2 {
				b.unchanged(func() { b.same("conflicts", test.conflicts, b.apply(a, pinned(1), apply.Conflicted, 1).Conflicts) })
			}
			b.same("spec", before, b.live().Object["spec"])
			b.owned()
			b.replaced()
		})
	}
}

// Forcing a field takes only that field, and the same request records its value (U-SSA-2).
func TestForceMovesOneField(t *testing.T) {
	b := newEnvironment(t, stock, map[string]any{"replicas": int64(2), "domain": "apps.example.org"})
	b.apply(b.applier(), pinned(1), apply.Applied, 1)
	b.managers(".spec.replicas", owner)
	b.managers(".spec.domain", stock)
	b.spec(int64(1), "replicas")
	b.replaced(stockReplicas("2"))
	b.owned(".metadata.annotations."+annotation, ".spec.replicas", ".spec.nodePlacement.nodeSelector", ".spec.nodePlacement.tolerations")
}

// TestEqualIntentSendsNothing shows R-SNO-4 (U-SSA-3): an intent in force is not sent again, by no process.
func TestEqualIntentSendsNothing(t *testing.T) {
	for create, n := range map[string]int64{stock: 2, person: 1} {
		t.Run(create, func(t *testing.T) {
			b := newEnvironment(t, create, replicas(n))
			a := b.applier()
			if outcome := b.apply(a, pinned(1), apply.Applied, 1); len(outcome.Changes) != 3 {
				t.Errorf("changes: %+v, want three", outcome.Changes)
			}
			b.unchanged(func() {
				b.apply(a, pinned(1), apply.Unchanged, 0)
				for _, change := range b.apply(b.applier(), pinned(1), apply.Unchanged, 0).Changes {
					if change.Differs {
						t.Errorf("differs although the patch is in force: %+v", change)
					}
				}
			})
			b.merge(person, `{"metadata":{"labels":{"a":"b"}},"spec":{"domain":"apps.example.org"}}`)
			b.apply(a, pinned(1), apply.Unchanged, 0)
		})
	}
}

// A value that the API server normalizes is not sent again.
func TestNormalizedValueSendsNothing(t *testing.T) {
	b := newDeployment(t, stock)
	a := b.applier()
	intent := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1000m"}}},
	}}}}
	b.apply(a, intent, apply.Applied, 1)
	b.apply(a, intent, apply.Unchanged, 0)
	b.merge(person, `{"metadata":{"labels":{"a":"b"}}}`)
	b.apply(a, intent, apply.Unchanged, 0)
	b.merge(person, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}}}}`)
	b.apply(a, intent, apply.Conflicted, 1) // only the API server knows the element's owners
}

// A dry run reports changes and writes nothing (U-SSA-4).
func TestDryRun(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	a := b.applier(dryRun)
	const selector = ".spec.nodePlacement.nodeSelector.matchLabels.node-role.kubernetes.io/master"
	const tolerations = `[{"effect":"NoSchedule","key":"node-role.kubernetes.io/master","operator":"Exists"}]`
	want := []ownership.Change{
		{Field: selector, Live: "-", Desired: `""`, Owner: "-", Differs: true},
		{Field: ".spec.nodePlacement.tolerations", Live: "-", Desired: tolerations, Owner: "-", Differs: true},
		{Field: ".spec.replicas", Live: "2", Desired: "1", Owner: stock, Differs: true},
	}
	b.unchanged(func() {
		for range 2 {
			b.same("changes", want, b.apply(a, pinned(1), apply.WouldApply, 1).Changes)
		}
	})
	b.apply(b.applier(), pinned(1), apply.Applied, 1)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.unchanged(func() { b.release(a, apply.ReleaseOptions{}, apply.WouldRelease, 2) })
	b.spec(int64(1), "replicas")
}

// The API server's answer fills the configuration that was sent (U-SSA-5), which must not be the caller's.
func TestAnswerIsNotTheNextIntent(t *testing.T) {
	b := newEnvironment(t, person, map[string]any{"domain": "apps.example.org"})
	a, u := b.applier(), b.object()
	for _, n := range []int64{1, 2} {
		u.Object["spec"] = replicas(n)
		before := u.DeepCopy()
		if outcome, err := a.Apply(t.Context(), b.live(), client.ApplyConfigurationFromUnstructured(u)); err != nil || outcome.Kind != apply.Applied {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		b.same("the caller's intent", before.Object, u.Object)
		b.owned(".spec.replicas")
	}
	if value, found, _ := unstructured.NestedString(b.live().Object, "spec", "httpEmptyRequestsPolicy"); !found || value == "" {
		t.Error("the API server set no default, so nothing was tested")
	}
}

// A typed object claims every field that its type writes (U-SSA-6).
func TestTypedObjectClaimsMore(t *testing.T) {
	b := newEnvironment(t, person, map[string]any{"domain": "apps.example.org"})
	b.apply(b.applier(), replicas(1), apply.Applied, 1)
	b.owned(".spec.replicas")

	one := int32(1)
	typed := &operatorv1.IngressController{Spec: operatorv1.IngressControllerSpec{Replicas: &one}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	b.must(err)
	u := b.object()
	u.Object["spec"] = content["spec"]
	b.must(b.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("typed")))
	if got := ownedBy(t, b.live(), "typed"); len(got) <= 1 || !strings.Contains(strings.Join(got, " "), ".spec.tuningOptions") {
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
			b := newEnvironment(t, stock, replicas(2))
			b.apply(b.applier(), replicas(1), apply.Applied, 1)
			live := b.live()
			b.must(b.admin.Delete(t.Context(), b.object()))
			if again {
				b.create(stock, replicas(3))
			}
			fresh := b.applier()
			_, err := fresh.Apply(t.Context(), live, b.intent(map[string]any{"domain": "d"}))
			b.fails("applying", err, want)
			_, err = fresh.Apply(t.Context(), live, b.intent(replicas(7)))
			b.fails("forcing", err, want)
			_, err = fresh.Release(t.Context(), live, apply.ReleaseOptions{Restore: func(patch.Replaced) bool { return false }})
			b.fails("releasing", err, want)
			_, err = fresh.Release(t.Context(), live, apply.ReleaseOptions{})
			b.fails("releasing and restoring", err, want)
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(ingressController)
			b.must(b.admin.List(t.Context(), list, client.InNamespace(b.namespace)))
			if again {
				b.spec(int64(3), "replicas")
				b.managers(".spec.replicas", stock)
			} else if len(list.Items) != 0 {
				t.Errorf("the object was created: %v", list.Items)
			}
		})
	}
}

func TestForceLosesTheRace(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	applies := 0
	a := b.intercept(b.applier(), func(string) error {
		if applies++; applies == 1 {
			b.merge(person, `{"spec":{"replicas":5}}`)
		}
		return nil
	})
	_, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1)))
	b.fails("applying", err, apply.ErrStale)
	b.spec(int64(5), "replicas")
	b.managers(".spec.replicas", person)
	b.replaced()
	b.apply(b.applier(), replicas(1), apply.Conflicted, 1)
}

func TestStaleIsNotGone(t *testing.T) {
	modified := apierrors.NewConflict(schema.GroupResource{Resource: "ingresscontrollers"}, "squid", errors.New("the object has been modified"))
	if err := apply.StaleOrGone(modified); !errors.Is(err, apply.ErrStale) || errors.Is(err, apply.ErrGone) {
		t.Errorf("got %v, want ErrStale alone", err)
	}
}

func TestForbidden(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, replicas(1), apply.Applied, 1)
	a.Client = b.server.Client(t, b.namespace+"-unauthorized")
	b.unchanged(func() {
		if outcome, err := a.Apply(t.Context(), b.live(), b.intent(replicas(3))); !apierrors.IsForbidden(err) || outcome.Kind != apply.Failed {
			t.Errorf("applying: %+v, %v, want Forbidden", outcome, err)
		}
		if outcome, err := a.Release(t.Context(), b.live(), apply.ReleaseOptions{}); !apierrors.IsForbidden(err) || outcome.Kind != apply.Failed {
			t.Errorf("releasing: %+v, %v, want Forbidden", outcome, err)
		}
	})
}

func TestInvalidValueIsAnError(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	b.unchanged(func() {
		_, err := b.applier().Apply(t.Context(), b.live(), b.intent(map[string]any{"replicas": "many"}))
		if err == nil || !strings.Contains(err.Error(), "replicas") {
			t.Errorf("got %v, want an error about replicas", err)
		}
	})
}

func TestForceConflicts(t *testing.T) {
	spec := map[string]any{"replicas": int64(3),
		"nodePlacement": map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{"infra": ""}}}}
	b := newEnvironment(t, person, spec)
	a := b.applier(forced)
	b.apply(a, pinned(1), apply.Applied, 1)
	b.spec(pinned(1)["nodePlacement"], "nodePlacement")
	b.replaced(
		patch.Replaced{Field: ".spec.nodePlacement.nodeSelector", Manager: person, Value: []byte(`{"matchLabels":{"infra":""}}`)},
		patch.Replaced{Field: ".spec.replicas", Manager: person, Value: []byte("3")},
	)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.spec(spec["nodePlacement"], "nodePlacement")
	b.spec(int64(3), "replicas")
	b.managers(".spec.nodePlacement.nodeSelector", person)
}

// The annotation may hold the only copy of a value.
func TestDamagedAnnotationStopsEverything(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, replicas(1), apply.Applied, 1)
	b.merge(person, `{"metadata":{"annotations":{"`+annotation+`":"[{"}}}`)
	for _, applier := range []*apply.Applier{a, b.applier(), b.applier(forced)} {
		b.server.NoWrites(t, b.namespace, func() {
			_, err := applier.Apply(t.Context(), b.live(), b.intent(pinned(1)))
			b.fails("applying", err, patch.ErrReplacedAnnotation)
			_, err = applier.Release(t.Context(), b.live(), apply.ReleaseOptions{})
			b.fails("releasing", err, patch.ErrReplacedAnnotation)
		})
	}
}

// Invalid arguments are rejected before a request is sent.
func TestBadArguments(t *testing.T) {
	b := newEnvironment(t, stock, replicas(2))
	intent := b.intent(replicas(1))
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		intent runtime.ApplyConfiguration
	}{
		"no uid":            {func(u *unstructured.Unstructured) { u.SetUID("") }, intent},
		"no kind":           {func(u *unstructured.Unstructured) { u.SetKind("") }, intent},
		"another name":      {func(u *unstructured.Unstructured) { u.SetName("other") }, intent},
		"another namespace": {func(u *unstructured.Unstructured) { u.SetNamespace("other") }, intent},
		"another kind":      {func(*unstructured.Unstructured) {}, appsv1ac.Deployment("default", b.namespace)},
	} {
		b.server.NoWrites(t, b.namespace, func() {
			live := b.live()
			test.change(live)
			_, err := b.applier().Apply(t.Context(), live, test.intent)
			b.fails(name, err, apply.ErrIntent)
		})
	}
}

type recorder map[string]int

func (r recorder) RecordApply(module string, kind apply.Kind) { r[module+" "+string(kind)]++ }
func (r recorder) RecordConflict(module, fieldManager string) { r[module+" over "+fieldManager]++ }

func TestRecorder(t *testing.T) {
	b := newEnvironment(t, person, replicas(2))
	recorded := recorder{}
	a := b.applier(func(a *apply.Applier) { a.Recorder = recorded })
	b.apply(a, replicas(1), apply.Conflicted, 1)
	b.apply(a, replicas(2), apply.Applied, 1)
	b.apply(a, replicas(2), apply.Unchanged, 0)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	_, err := a.Apply(t.Context(), b.object(), b.intent(replicas(1)))
	b.fails("an object that was not read", err, apply.ErrIntent)
	b.same("recorded", recorder{
		"sample conflict": 1, "sample over oc": 1, "sample applied": 1, "sample unchanged": 1, "sample released": 1, "sample error": 1,
	}, recorded)
}

// An intent with a key of an atomic map takes the whole map, only from an overridable manager.
func TestPartOfAnAtomicValue(t *testing.T) {
	const selector = ".spec.template.spec.nodeSelector"
	intent := map[string]any{"template": map[string]any{"spec": map[string]any{
		"nodeSelector": map[string]any{"os": "linux", "node-role.kubernetes.io/master": ""},
	}}}
	b := newDeployment(t, stock)
	b.apply(b.applier(takeOver), intent, apply.Applied, 1)
	b.replaced(patch.Replaced{Field: selector, Manager: stock, Value: []byte(`{"os":"linux"}`)})
	b.managers(selector, owner)
	b.apply(b.applier(takeOver), intent, apply.Unchanged, 0)

	b = newDeployment(t, person)
	b.apply(b.applier(takeOver), intent, apply.Conflicted, 1)
	b.managers(selector, person)
}
