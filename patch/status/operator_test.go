package status_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/patch/status"
)

// How conditions of several writers merge is decided by the API server.
var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.IngressControllers}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const host = "cluster-ingress-operator"

// bench is an operator's resource with one condition of its host, and a sink that writes as a user of its own.
type bench struct {
	*testing.T
	server    *patchtest.APIServer
	admin     client.Client
	namespace string
	sink      *status.OperatorConditions
	clock     *clocktesting.FakePassiveClock
}

func newBench(t *testing.T) *bench {
	t.Helper()
	server := shared.Server(t)
	b := &bench{T: t, server: server, admin: server.Admin(t), namespace: server.Namespace(t),
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))}
	b.sink = &status.OperatorConditions{Client: server.Client(t, b.namespace, "system:masters"), Module: "sample", Clock: b.clock}
	if err := b.admin.Create(t.Context(), b.object(), client.FieldOwner(host)); err != nil {
		t.Fatal(err)
	}
	b.hostWrites("True")
	return b
}

func (b *bench) object() *operatorv1.IngressController {
	return &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "default"}}
}

// hostWrites is an operator that puts its whole status, with no condition but its own.
func (b *bench) hostWrites(available operatorv1.ConditionStatus) {
	b.Helper()
	ic := b.object()
	if err := b.admin.Get(b.Context(), client.ObjectKeyFromObject(ic), ic); err != nil {
		b.Fatal(err)
	}
	ic.Status.Conditions = []operatorv1.OperatorCondition{{Type: "Available", Status: available, LastTransitionTime: metav1.Unix(1, 0)}}
	if err := b.admin.Status().Update(b.Context(), ic, client.FieldOwner(host)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) live() *unstructured.Unstructured {
	b.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("operator.openshift.io/v1")
	u.SetKind("IngressController")
	if err := b.admin.Get(b.Context(), client.ObjectKeyFromObject(b.object()), u); err != nil {
		b.Fatal(err)
	}
	return u
}

// show must take the given number of write requests and ask to be called again after the given time.
func (b *bench) show(conditions []operatorv1.OperatorCondition, requests int, again time.Duration) {
	b.Helper()
	target := b.live()
	var got time.Duration
	var err error
	writes := b.server.WritesDuring(b, b.namespace, func() { got, err = b.sink.Show(b.Context(), target, conditions) })
	if err != nil {
		b.Fatal(err)
	}
	if len(writes) != requests {
		b.Errorf("%d write requests, want %d: %v", len(writes), requests, writes)
	}
	if got != again {
		b.Errorf("call again after %v, want %v", got, again)
	}
}

// has compares all conditions, as "Type=Status Reason, at its second".
func (b *bench) has(want ...string) {
	b.Helper()
	conditions, err := status.Conditions(b.live())
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	for _, c := range conditions {
		got = append(got, c.Type+"="+string(c.Status)+" "+c.Reason+" "+c.LastTransitionTime.UTC().Format(time.TimeOnly))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func conditionsOf(state patch.State, reason string) []operatorv1.OperatorCondition {
	return patch.Result{State: state, Reason: reason, Message: "Because"}.Conditions("Sample", false)
}

func TestConditionsAreWrittenOncePerTransition(t *testing.T) {
	b := newBench(t)
	b.show(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	first := []string{"Available=True  00:00:01", "SamplePatchFailing=False AsExpected 03:04:05", "SamplePatchInForce=True AsExpected 03:04:05", "SamplePatchInProgress=False AsExpected 03:04:05"}
	b.hasAnyOrder(first...)

	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.show(conditionsOf(patch.InForce, "AsExpected"), 0, 0)
	b.hasAnyOrder(first...)

	// A new reason is no transition: the time stays. A new status is one.
	b.show(conditionsOf(patch.InForce, "Otherwise"), 1, 0)
	b.hasAnyOrder(first[0], first[1], "SamplePatchInForce=True Otherwise 03:04:05", first[3])
	b.show(conditionsOf(patch.Blocked, "FieldOwnedByOther"), 1, 0)
	b.hasAnyOrder(first[0], first[1], "SamplePatchInForce=False FieldOwnedByOther 04:04:05", first[3])

	// Another process knows nothing of this one and still writes nothing.
	b.sink = &status.OperatorConditions{Client: b.sink.Client, Module: "sample", Clock: b.clock}
	b.show(conditionsOf(patch.Blocked, "FieldOwnedByOther"), 0, 0)
}

// hasAnyOrder is has without the order, which the API server chooses.
func (b *bench) hasAnyOrder(want ...string) {
	b.Helper()
	conditions, err := status.Conditions(b.live())
	if err != nil {
		b.Fatal(err)
	}
	got, wanted := map[string]bool{}, map[string]bool{}
	for _, c := range conditions {
		got[c.Type+"="+string(c.Status)+" "+c.Reason+" "+c.LastTransitionTime.UTC().Format(time.TimeOnly)] = true
	}
	for _, w := range want {
		wanted[w] = true
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		b.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// The first look of a version whose conditions have other types takes those of an earlier version off, in the write that brings its own. What others
// wrote stays.
func TestConditionsOfEarlierVersions(t *testing.T) {
	b := newBench(t)
	// As an earlier version applied them, under the name that never changes.
	leave := func(more ...operatorv1.OperatorCondition) {
		t.Helper()
		conditions := more
		for _, suffix := range []string{"Degraded", "Progressing"} {
			conditions = append(conditions, operatorv1.OperatorCondition{Type: "Sample" + suffix, Status: "True", Reason: "Earlier", LastTransitionTime: metav1.Unix(2, 0)})
		}
		ic := b.object()
		ic.TypeMeta = metav1.TypeMeta{APIVersion: "operator.openshift.io/v1", Kind: "IngressController"}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ic)
		if err != nil {
			t.Fatal(err)
		}
		encoded := []any{}
		for i := range conditions {
			c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
			if err != nil {
				t.Fatal(err)
			}
			encoded = append(encoded, c)
		}
		content["status"] = map[string]any{"conditions": encoded}
		delete(content, "spec")
		earlier := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
		if err := b.admin.Status().Apply(t.Context(), earlier, client.FieldOwner("sno.solonode.github.io/sample"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		b.sink = &status.OperatorConditions{Client: b.sink.Client, Module: "sample", Clock: b.clock} // of the new version
	}
	now := []string{"Available=True  00:00:01", "SamplePatchFailing=False AsExpected 03:04:05", "SamplePatchInForce=True AsExpected 03:04:05", "SamplePatchInProgress=False AsExpected 03:04:05"}
	leave()
	b.hasAnyOrder("Available=True  00:00:01", "SampleDegraded=True Earlier 00:00:02", "SampleProgressing=True Earlier 00:00:02")
	b.show(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	b.hasAnyOrder(now...)
	b.show(conditionsOf(patch.InForce, "AsExpected"), 0, 0)

	// Also where everything that is to be shown is there already.
	shown, err := status.Conditions(b.live())
	if err != nil {
		t.Fatal(err)
	}
	leave(slices.DeleteFunc(shown, func(c operatorv1.OperatorCondition) bool { return c.Type == "Available" })...)
	b.show(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	b.hasAnyOrder(now...)
}

// A host that puts its whole status drops our conditions. They come back, at most once in two minutes.
func TestDroppedConditionsComeBack(t *testing.T) {
	b := newBench(t)
	same := func() []operatorv1.OperatorCondition { return conditionsOf(patch.InForce, "AsExpected") }
	b.show(same(), 1, 0)
	b.hostWrites("False")
	b.has("Available=False  00:00:01")
	b.show(same(), 0, status.ReassertPause)

	b.clock.SetTime(b.clock.Now().Add(status.ReassertPause - time.Second))
	b.show(same(), 0, time.Second)
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	b.show(same(), 1, 0)
	b.hostWrites("True")
	b.show(same(), 0, status.ReassertPause)

	// Something else to say is no race.
	b.show(conditionsOf(patch.NotNeeded, "NotNeeded"), 1, 0)
	b.hasAnyOrder("Available=True  00:00:01", "SamplePatchFailing=False AsExpected 03:06:05", "SamplePatchInForce=False NotNeeded 03:06:05", "SamplePatchInProgress=False AsExpected 03:06:05")
}

// An object that is gone is nobody to tell.
func TestConditionsOfAnObjectThatIsGone(t *testing.T) {
	b := newBench(t)
	target := b.live()
	if err := b.admin.Delete(t.Context(), b.object()); err != nil {
		t.Fatal(err)
	}
	if again, err := b.sink.Show(t.Context(), target, conditionsOf(patch.InForce, "AsExpected")); again != 0 || err != nil {
		t.Errorf("gone: %v, %v", again, err)
	}
	if again, err := b.sink.Show(t.Context(), nil, conditionsOf(patch.InForce, "AsExpected")); again != 0 || err != nil {
		t.Errorf("no object: %v, %v", again, err)
	}
}

// What the API server refuses is an error that names the object, and is tried again.
func TestConditionsRefused(t *testing.T) {
	b := newBench(t)
	b.sink.Client = b.server.Client(t, "nobody-in-particular")
	for range 2 {
		if _, err := b.sink.Show(t.Context(), b.live(), conditionsOf(patch.InForce, "AsExpected")); err == nil {
			t.Fatal("no error although nothing is permitted")
		}
	}
	b.sink.Client = b.server.Client(t, b.namespace, "system:masters")
	b.show(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
}

func TestConditionsOfADamagedStatus(t *testing.T) {
	for name, damaged := range map[string]any{
		"not a list":         "text",
		"not conditions":     []any{"text"},
		"a type of its own":  []any{map[string]any{"type": int64(7)}},
		"a time of its own":  []any{map[string]any{"type": "A", "lastTransitionTime": "yesterday"}},
		"conditions a level": map[string]any{},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Sample", "status": map[string]any{"conditions": damaged}}}
		if got, err := status.Conditions(u); err == nil {
			t.Errorf("%s: no error, but %v", name, got)
		}
		if _, err := (&status.OperatorConditions{Module: "sample"}).Show(context.Background(), u, nil); err == nil {
			t.Errorf("%s: shown without an error", name)
		}
	}
	if got, err := status.Conditions(&unstructured.Unstructured{Object: map[string]any{}}); err != nil || len(got) > 0 {
		t.Errorf("no status: %v, %v", got, err)
	}
}
