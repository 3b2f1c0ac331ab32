package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/ownership"
)

// The traps are the facts U-SSA-1 to U-SSA-9 of docs/upstream.md, and have their numbers.

// TestTrap1ConflictNamesTheManager shows R-SNO-5 (U-SSA-1): somebody else's value is a conflict that names field and
// manager, and nothing is written.
func TestTrap1ConflictNamesTheManager(t *testing.T) {
	b := newBench(t, person, replicas(2))
	a := b.applier()
	for range 2 { // the second look finds the same
		b.unchanged(func() {
			outcome := b.apply(a, pinned(1), apply.Conflicted, 1)
			if diff := cmp.Diff([]apply.Conflict{{Field: ".spec.replicas", Manager: person}}, outcome.Conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
	b.spec(int64(2), "replicas")
	b.spec(nil, "nodePlacement", "nodeSelector")
	b.managers(".spec.replicas", person)
	b.remembered()
}

// A manager may be overridden in one field and in no other, and one that may not be overridden protects the whole patch.
func TestOverridableIsFieldAndManager(t *testing.T) {
	tests := map[string]struct {
		create   string
		spec     map[string]any
		also     string // a second writer
		alsoSpec string
	}{
		"the right manager, another field": {create: stock, spec: map[string]any{"nodePlacement": map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{"infra": ""}}}}},
		"another manager, the right field": {create: person, spec: replicas(2)},
		"both, each with a field": {create: stock, spec: replicas(2), also: person,
			alsoSpec: `{"spec":{"nodePlacement":{"nodeSelector":{"matchLabels":{"infra":""}}}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.create, test.spec)
			if test.also != "" {
				b.merge(test.also, test.alsoSpec)
			}
			b.unchanged(func() { b.apply(b.applier(), pinned(1), apply.Conflicted, 1) })
		})
	}
}

// Trap 2 (U-SSA-2): forcing over an overridable manager moves only the contested field, and the replaced value is
// remembered by the same request.
func TestTrap2ForceMovesOneField(t *testing.T) {
	b := newBench(t, stock, map[string]any{"replicas": int64(2), "domain": "apps.example.org"})
	b.apply(b.applier(), pinned(1), apply.Applied, 1)
	b.managers(".spec.replicas", owner)
	b.managers(".spec.domain", stock)
	b.spec(int64(1), "replicas")
	b.remembered(patch.Replaced{Field: ".spec.replicas", Manager: stock, Value: []byte("2")})
	b.owned(
		".metadata.annotations."+annotation,
		".spec.replicas",
		".spec.nodePlacement.nodeSelector",
		".spec.nodePlacement.tolerations",
	)
}

// TestTrap3EqualIntentSendsNothing shows R-SNO-4 (U-SSA-3): what is on the object already is not sent again, by this
// process or by the next one.
func TestTrap3EqualIntentSendsNothing(t *testing.T) {
	for name, create := range map[string]string{"forced": stock, "co-owned": person} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, create, map[string]any{"replicas": map[string]int64{stock: 2, person: 1}[create]})
			a := b.applier()
			if outcome := b.apply(a, pinned(1), apply.Applied, 1); len(outcome.Changes) != 3 {
				t.Errorf("changes: %+v, want three", outcome.Changes)
			}
			b.unchanged(func() {
				b.apply(a, pinned(1), apply.Unchanged, 0)
				outcome := b.apply(b.applier(), pinned(1), apply.Unchanged, 0)
				for _, change := range outcome.Changes {
					if change.Differs {
						t.Errorf("differs although the patch is in force: %+v", change)
					}
				}
			})
			// Somebody else's field, and the status, do not matter either.
			b.merge(person, `{"metadata":{"labels":{"a":"b"}},"spec":{"domain":"apps.example.org"}}`)
			b.apply(a, pinned(1), apply.Unchanged, 0)
		})
	}
}

// A value that the API server writes in another form does not look like the intent; it is still not sent again.
func TestNormalizedValueSendsNothing(t *testing.T) {
	server := shared.Server(t)
	ctx, admin, namespace := t.Context(), server.Admin(t), server.Namespace(t)
	deployment := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		u.SetNamespace(namespace)
		u.SetName("router")
		return u
	}
	created := deployment()
	created.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
		},
	}
	if err := admin.Create(ctx, created, client.FieldOwner(stock)); err != nil {
		t.Fatal(err)
	}
	a := &apply.Applier{Client: server.Client(t, namespace, "system:masters"), Module: module}
	look := func(want apply.Kind, requests int) {
		t.Helper()
		live := deployment()
		if err := admin.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		intent := deployment()
		intent.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1000m"}}},
		}}}}
		writes := server.WritesDuring(t, namespace, func() {
			outcome, err := a.Apply(ctx, live, client.ApplyConfigurationFromUnstructured(intent))
			if err != nil || outcome.Kind != want {
				t.Errorf("got %+v, %v, want %s", outcome, err, want)
			}
		})
		if len(writes) != requests {
			t.Errorf("%d write requests, want %d: %v", len(writes), requests, writes)
		}
	}
	look(apply.Applied, 1)
	look(apply.Unchanged, 0)
	merge(t, admin, deployment(), person, `{"metadata":{"labels":{"a":"b"}}}`)
	look(apply.Unchanged, 0)
	merge(t, admin, deployment(), person, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}}}}`)
	look(apply.Conflicted, 1)
}

// Trap 4 (U-SSA-4): a dry run says what would change and changes nothing.
func TestTrap4DryRun(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier(func(a *apply.Applier) { a.DryRun = true })
	want := []ownership.Change{
		{Field: ".spec.nodePlacement.nodeSelector.matchLabels.node-role.kubernetes.io/master", Live: "-", Desired: `""`, Owner: "-", Differs: true},
		{Field: ".spec.nodePlacement.tolerations", Live: "-", Desired: `[{"effect":"NoSchedule","key":"node-role.kubernetes.io/master","operator":"Exists"}]`, Owner: "-", Differs: true},
		{Field: ".spec.replicas", Live: "2", Desired: "1", Owner: stock, Differs: true},
	}
	b.unchanged(func() {
		for range 2 { // a dry run is nothing to remember
			outcome := b.apply(a, pinned(1), apply.WouldApply, 1)
			if diff := cmp.Diff(want, outcome.Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		}
	})
	b.apply(b.applier(), pinned(1), apply.Applied, 1)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.unchanged(func() { b.release(a, apply.ReleaseOptions{}, apply.WouldRelease, 2) })
	b.spec(int64(1), "replicas")
}

// Trap 5 (U-SSA-5): the API server's answer fills the configuration that was sent. The caller's is left alone, so that
// applying it once more does not claim the API server's defaults.
func TestTrap5AnswerIsNotTheNextIntent(t *testing.T) {
	b := newBench(t, person, map[string]any{"domain": "apps.example.org"})
	u := b.object()
	u.Object["spec"] = replicas(1)
	before := u.DeepCopy()
	a := b.applier()
	for _, n := range []int64{1, 2} {
		if err := unstructured.SetNestedField(u.Object, n, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(before.Object, n, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		if outcome, err := a.Apply(t.Context(), b.live(), client.ApplyConfigurationFromUnstructured(u)); err != nil || outcome.Kind != apply.Applied {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		if diff := cmp.Diff(before.Object, u.Object); diff != "" {
			t.Errorf("the caller's intent changed (-before +after):\n%s", diff)
		}
		b.owned(".spec.replicas")
	}
	if value, found, _ := unstructured.NestedString(b.live().Object, "spec", "httpEmptyRequestsPolicy"); !found || value == "" {
		t.Error("the API server set no default, so this test shows nothing")
	}
}

// Trap 6 (U-SSA-6): an apply configuration owns what was intended; a typed object, applied as it is, claims every field
// that its type writes although nobody set it.
func TestTrap6TypedObjectClaimsMore(t *testing.T) {
	b := newBench(t, person, map[string]any{"domain": "apps.example.org"})
	b.apply(b.applier(), replicas(1), apply.Applied, 1)
	b.owned(".spec.replicas")

	one := int32(1)
	typed := &operatorv1.IngressController{Spec: operatorv1.IngressControllerSpec{Replicas: &one}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	u := b.object()
	u.Object["spec"] = content["spec"]
	if err := b.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("typed")); err != nil {
		t.Fatal(err)
	}
	if got := ownedBy(t, b.live(), "typed"); len(got) <= 1 || !strings.Contains(strings.Join(got, " "), ".spec.tuningOptions") {
		t.Errorf("a typed object owns %v; the reason for apply configurations is gone", got)
	}
}

// Trap 7 (U-SSA-7): a patch never creates an object, nor touches another one of the same name.
func TestTrap7GoneObjectIsNotCreated(t *testing.T) {
	for name, again := range map[string]bool{"deleted": false, "deleted and made again": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, stock, replicas(2))
			a := b.applier()
			b.apply(a, replicas(1), apply.Applied, 1)
			live := b.live()
			if err := b.admin.Delete(t.Context(), b.object()); err != nil {
				t.Fatal(err)
			}
			if again {
				b.create(stock, replicas(3))
			}
			fresh := b.applier()
			if _, err := fresh.Apply(t.Context(), live, b.intent(map[string]any{"domain": "d"})); !errors.Is(err, apply.ErrGone) {
				t.Errorf("applying: %v, want ErrGone", err)
			}
			// The new object's replicas are in the way, and forcing is bound to the version that was read.
			if _, err := fresh.Apply(t.Context(), live, b.intent(replicas(7))); !errors.Is(err, apply.ErrGone) && !errors.Is(err, apply.ErrStale) {
				t.Errorf("forcing: %v, want ErrGone or ErrStale", err)
			}
			if _, err := fresh.Release(t.Context(), live, apply.ReleaseOptions{Restore: func(patch.Replaced) bool { return false }}); !errors.Is(err, apply.ErrGone) {
				t.Errorf("releasing: %v, want ErrGone", err)
			}
			if _, err := fresh.Release(t.Context(), live, apply.ReleaseOptions{}); !errors.Is(err, apply.ErrGone) && !errors.Is(err, apply.ErrStale) {
				t.Errorf("releasing and restoring: %v, want ErrGone or ErrStale", err)
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(ingressController)
			if err := b.admin.List(t.Context(), list, client.InNamespace(b.namespace)); err != nil {
				t.Fatal(err)
			}
			if again {
				b.spec(int64(3), "replicas")
				b.managers(".spec.replicas", stock)
			} else if len(list.Items) != 0 {
				t.Errorf("the object was made again: %v", list.Items)
			}
		})
	}
}

// Trap 9 (U-SSA-9): the conditions of two managers merge, and a host that writes its list without ours drops ours.
func TestTrap9ConditionsMerge(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	conditions := func(kind string) runtime.ApplyConfiguration {
		u := b.object()
		u.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": kind, "status": "True", "reason": "AsExpected", "message": "As expected", "lastTransitionTime": "2026-01-01T00:00:00Z"},
		}}
		return client.ApplyConfigurationFromUnstructured(u)
	}
	types := func(want ...string) {
		t.Helper()
		list, _, err := unstructured.NestedSlice(b.live().Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range list {
			got = append(got, item.(map[string]any)["type"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
	for manager, kind := range map[string]string{stock: "Available", owner: "SampleDegraded"} {
		if err := b.admin.Status().Apply(t.Context(), conditions(kind), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}
	if set, err := ownership.Applied(b.live(), owner, "status"); err != nil || set.Empty() {
		t.Errorf("owned in the status: %v, %v", set, err)
	}
	object := b.live()
	list, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil || len(list) != 2 {
		t.Fatalf("conditions: %v, %v, want two", list, err)
	}
	object.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Available", "status": "False", "reason": "R", "message": "M", "lastTransitionTime": "2026-01-01T00:00:00Z"},
	}}
	if err := b.admin.Status().Update(t.Context(), object, client.FieldOwner(stock)); err != nil {
		t.Fatal(err)
	}
	types("Available")
	if err := b.admin.Status().Apply(t.Context(), conditions("SampleDegraded"), client.FieldOwner(owner)); err != nil {
		t.Fatal(err)
	}
	types("Available", "SampleDegraded")
}

// Between reading the object and forcing, a person writes: the person wins.
func TestForceLosesTheRace(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	applies := 0
	a.Client = interceptor.NewClient(b.server.Client(t, b.namespace, "system:masters"), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if applies++; applies == 1 {
				b.merge(person, `{"spec":{"replicas":5}}`)
			}
			return c.Apply(ctx, obj, opts...)
		},
	})
	if _, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1))); !errors.Is(err, apply.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	b.spec(int64(5), "replicas")
	b.managers(".spec.replicas", person)
	b.remembered()
	b.apply(b.applier(), replicas(1), apply.Conflicted, 1)
}

// An object whose name has "uid" in it is stale, not gone.
func TestStaleIsNotGone(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	a.Client = interceptor.NewClient(b.admin, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "ingresscontrollers"}, "squid", errors.New("the object has been modified"))
		},
	})
	if _, err := a.Apply(t.Context(), b.live(), b.intent(replicas(1))); !errors.Is(err, apply.ErrStale) || errors.Is(err, apply.ErrGone) {
		t.Errorf("got %v, want ErrStale alone", err)
	}
}

func TestForbidden(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, replicas(1), apply.Applied, 1)

	reader := b.namespace + "-reader"
	b.server.Grant(t, reader, rbacv1.PolicyRule{APIGroups: []string{ingressController.Group}, Resources: []string{"ingresscontrollers"}, Verbs: []string{"get"}})
	a.Client = b.server.Client(t, reader)
	live := b.object()
	if err := a.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatalf("reading is granted: %v", err)
	}
	b.unchanged(func() {
		if outcome, err := a.Apply(t.Context(), live, b.intent(replicas(3))); !apierrors.IsForbidden(err) || outcome.Kind != apply.Refused {
			t.Errorf("applying: %+v, %v, want Forbidden", outcome, err)
		}
		if outcome, err := a.Release(t.Context(), live, apply.ReleaseOptions{}); !apierrors.IsForbidden(err) || outcome.Kind != apply.Refused {
			t.Errorf("releasing: %+v, %v, want Forbidden", outcome, err)
		}
	})
}

func TestInvalidValueIsAnError(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	b.unchanged(func() {
		_, err := b.applier().Apply(t.Context(), b.live(), b.intent(map[string]any{"replicas": "many"}))
		if err == nil || !strings.Contains(err.Error(), "replicas") {
			t.Errorf("got %v, want an error about replicas", err)
		}
	})
}

// ForceConflicts takes what a person owns, and remembers it.
func TestForceConflicts(t *testing.T) {
	spec := map[string]any{"replicas": int64(3), "nodePlacement": map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{"infra": ""}}}}
	b := newBench(t, person, spec)
	a := b.applier(func(a *apply.Applier) { a.ForceConflicts = true })
	b.apply(a, pinned(1), apply.Applied, 2)
	b.spec(pinned(1)["nodePlacement"], "nodePlacement")
	b.remembered(
		patch.Replaced{Field: ".spec.nodePlacement.nodeSelector", Manager: person, Value: []byte(`{"matchLabels":{"infra":""}}`)},
		patch.Replaced{Field: ".spec.replicas", Manager: person, Value: []byte("3")},
	)
	b.apply(a, pinned(1), apply.Unchanged, 0)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 2)
	b.spec(spec["nodePlacement"], "nodePlacement")
	b.spec(int64(3), "replicas")
	b.managers(".spec.nodePlacement.nodeSelector", person)
}

// An annotation that cannot be read may be all that is left of a person's value.
func TestDamagedAnnotationStopsEverything(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	a := b.applier()
	b.apply(a, replicas(1), apply.Applied, 1)
	b.merge(person, `{"metadata":{"annotations":{"`+annotation+`":"[{"}}}`)
	b.unchanged(func() {
		for _, applier := range []*apply.Applier{a, b.applier(), b.applier(func(a *apply.Applier) { a.ForceConflicts = true })} {
			b.server.NoWrites(t, b.namespace, func() {
				if _, err := applier.Apply(t.Context(), b.live(), b.intent(pinned(1))); !errors.Is(err, patch.ErrReplacedAnnotation) {
					t.Errorf("applying: %v, want ErrReplacedAnnotation", err)
				}
				if _, err := applier.Release(t.Context(), b.live(), apply.ReleaseOptions{}); !errors.Is(err, patch.ErrReplacedAnnotation) {
					t.Errorf("releasing: %v, want ErrReplacedAnnotation", err)
				}
			})
		}
	})
}

// What is not a pair of a live object and its intent is refused before anything is sent.
func TestBadArguments(t *testing.T) {
	b := newBench(t, stock, replicas(2))
	change := func(f func(*unstructured.Unstructured)) func() *unstructured.Unstructured {
		return func() *unstructured.Unstructured { u := b.live(); f(u); return u }
	}
	tests := map[string]struct {
		live   func() *unstructured.Unstructured
		intent runtime.ApplyConfiguration
		want   error
	}{
		"no uid":            {change(func(u *unstructured.Unstructured) { u.SetUID("") }), b.intent(replicas(1)), apply.ErrNotLive},
		"no kind":           {change(func(u *unstructured.Unstructured) { u.SetKind("") }), b.intent(replicas(1)), apply.ErrNotLive},
		"another name":      {change(func(u *unstructured.Unstructured) { u.SetName("other") }), b.intent(replicas(1)), apply.ErrIntent},
		"another namespace": {change(func(u *unstructured.Unstructured) { u.SetNamespace("other") }), b.intent(replicas(1)), apply.ErrIntent},
		"another kind":      {b.live, appsv1ac.Deployment("default", b.namespace), apply.ErrIntent},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b.server.NoWrites(t, b.namespace, func() {
				if _, err := b.applier().Apply(t.Context(), test.live(), test.intent); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		})
	}
}

type recorder map[string]int

func (r recorder) RecordApply(module string, kind apply.Kind) { r[module+" "+string(kind)]++ }
func (r recorder) RecordConflict(module, fieldManager string) { r[module+" over "+fieldManager]++ }

func TestRecorderHearsEveryOutcome(t *testing.T) {
	b := newBench(t, person, replicas(2))
	heard := recorder{}
	a := b.applier(func(a *apply.Applier) { a.Recorder = heard })
	b.apply(a, replicas(1), apply.Conflicted, 1)
	b.apply(a, replicas(2), apply.Applied, 1)
	b.apply(a, replicas(2), apply.Unchanged, 0)
	b.release(a, apply.ReleaseOptions{}, apply.Released, 1)
	if _, err := a.Apply(t.Context(), b.object(), b.intent(replicas(1))); err == nil {
		t.Error("an object that was not read is no live object")
	}
	want := recorder{
		"sample conflict": 1, "sample over oc": 1, "sample applied": 1, "sample unchanged": 1, "sample released": 1, "sample error": 1,
	}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// An intent names a key of a map that the API has as one value: what is taken is the whole map, in one request, and from nobody else.
func TestForeseenInAnAtomicValue(t *testing.T) {
	k := kinds["built-in type"]
	intent := map[string]any{"template": map[string]any{"spec": map[string]any{
		"nodeSelector": map[string]any{"os": "linux", "node-role.kubernetes.io/master": ""},
	}}}
	b := k.bench(t, stock)
	b.apply(b.applier(k.takeOver), intent, apply.Applied, 1)
	b.remembered(patch.Replaced{Field: ".spec.template.spec.nodeSelector", Manager: stock, Value: []byte(`{"os":"linux"}`)})
	b.managers(".spec.template.spec.nodeSelector", owner)
	b.apply(b.applier(k.takeOver), intent, apply.Unchanged, 0)

	b = k.bench(t, person)
	b.apply(b.applier(k.takeOver), intent, apply.Conflicted, 1)
	b.managers(".spec.template.spec.nodeSelector", person)
}
