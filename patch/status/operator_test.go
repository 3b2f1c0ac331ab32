// SPDX-License-Identifier: Apache-2.0

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
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
	"github.com/solonode/sno/patch/status"
)

var shared = patchtest.NewShared(patchtest.Options{CRDs: []string{patchtest.IngressControllers}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const host = "cluster-ingress-operator"

// environment is an operator's resource with one condition, and a sink with its own user.
type environment struct {
	*testing.T
	server    *patchtest.APIServer
	admin     client.Client
	namespace string
	sink      *status.OperatorConditions
	clock     *clocktesting.FakePassiveClock
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	server := shared.Server(t)
	b := &environment{T: t, server: server, admin: server.Admin(t), namespace: server.Namespace(t),
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))}
	b.sink = &status.OperatorConditions{Client: server.Client(t, b.namespace, "system:masters"), Module: "sample", Clock: b.clock}
	patchtest.NoError(t, b.admin.Create(t.Context(), b.object(), client.FieldOwner(host)))
	b.hostWrites("True")
	return b
}

func (b *environment) object() *operatorv1.IngressController {
	return &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "default"}}
}

// hostWrites replaces the status by the host's condition.
func (b *environment) hostWrites(available operatorv1.ConditionStatus) {
	b.Helper()
	ic := b.object()
	patchtest.NoError(b, b.admin.Get(b.Context(), client.ObjectKeyFromObject(ic), ic))
	ic.Status.Conditions = []operatorv1.OperatorCondition{{Type: "Available", Status: available, LastTransitionTime: metav1.Unix(1, 0)}}
	patchtest.NoError(b, b.admin.Status().Update(b.Context(), ic, client.FieldOwner(host)))
}

func (b *environment) live() *unstructured.Unstructured {
	b.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("operator.openshift.io/v1")
	u.SetKind("IngressController")
	patchtest.NoError(b, b.admin.Get(b.Context(), client.ObjectKeyFromObject(b.object()), u))
	return u
}

func (b *environment) restart() {
	b.sink = &status.OperatorConditions{Client: b.sink.Client, Module: "sample", Clock: b.clock}
}

// publish must send the number of requests and return the time.
func (b *environment) publish(conditions []operatorv1.OperatorCondition, requests int, again time.Duration) {
	b.Helper()
	target := b.live()
	var got time.Duration
	var err error
	writes := b.server.WritesDuring(b, b.namespace, func() { got, err = b.sink.Publish(b.Context(), target, conditions) })
	patchtest.NoError(b, err)
	if len(writes) != requests {
		b.Errorf("%d write requests, want %d: %v", len(writes), requests, writes)
	}
	if got != again {
		b.Errorf("call again after %v, want %v", got, again)
	}
}

// has compares all conditions, as "Type=Status Reason Time", sorted by type.
func (b *environment) has(want ...string) {
	b.Helper()
	conditions, err := status.Conditions(b.live())
	patchtest.NoError(b, err)
	var got []string
	for _, c := range conditions {
		got = append(got, c.Type+"="+string(c.Status)+" "+c.Reason+" "+c.LastTransitionTime.UTC().Format(time.TimeOnly))
	}
	slices.Sort(got) // the API server chooses the order
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func conditionsOf(state patch.State, reason string) []operatorv1.OperatorCondition {
	return patch.Result{State: state, Reason: reason, Message: "Because"}.Conditions("Sample", false)
}

var wantConditions = []string{
	"Available=True  00:00:01", "SamplePatchFailing=False AsExpected 03:04:05", "SamplePatchInForce=True AsExpected 03:04:05",
	"SamplePatchInProgress=False AsExpected 03:04:05",
}

func TestConditionsAreWrittenOncePerTransition(t *testing.T) {
	b := newEnvironment(t)
	b.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	first := wantConditions
	b.has(first...)

	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.publish(conditionsOf(patch.InForce, "AsExpected"), 0, 0)
	b.has(first...)

	// The transition time changes with the status, not with the reason.
	b.publish(conditionsOf(patch.InForce, "Changed"), 1, 0)
	b.has(first[0], first[1], "SamplePatchInForce=True Changed 03:04:05", first[3])
	b.publish(conditionsOf(patch.Blocked, "FieldOwnedByOther"), 1, 0)
	b.has(first[0], first[1], "SamplePatchInForce=False FieldOwnedByOther 04:04:05", first[3])

	b.restart()
	b.publish(conditionsOf(patch.Blocked, "FieldOwnedByOther"), 0, 0)
}

// Conditions of an earlier version with other types are removed.
func TestConditionsOfEarlierVersions(t *testing.T) {
	b := newEnvironment(t)
	applyEarlier := func(also ...any) {
		t.Helper()
		for _, suffix := range []string{"Degraded", "Progressing"} {
			also = append(also, map[string]any{
				"type": "Sample" + suffix, "status": "True", "reason": "Earlier", "lastTransitionTime": "1970-01-01T00:00:02Z",
			})
		}
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": also}}}
		u.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("IngressController"))
		u.SetNamespace(b.namespace)
		u.SetName("default")
		earlier := client.ApplyConfigurationFromUnstructured(u)
		patchtest.NoError(t, b.admin.Status().Apply(t.Context(), earlier, client.FieldOwner("sno.solonode.github.io/sample"), client.ForceOwnership))
		b.restart()
	}
	applyEarlier()
	b.has("Available=True  00:00:01", "SampleDegraded=True Earlier 00:00:02", "SampleProgressing=True Earlier 00:00:02")
	b.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	b.has(wantConditions...)
	b.publish(conditionsOf(patch.InForce, "AsExpected"), 0, 0)

	published, _, err := unstructured.NestedSlice(b.live().Object, "status", "conditions")
	patchtest.NoError(t, err)
	applyEarlier(slices.DeleteFunc(published, func(c any) bool { return c.(map[string]any)["type"] == "Available" })...)
	b.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	b.has(wantConditions...)
}

// A host that updates its whole status removes the conditions (U-SSA-9). They are restored after ReassertInterval.
func TestDroppedConditionsComeBack(t *testing.T) {
	b := newEnvironment(t)
	same := func() []operatorv1.OperatorCondition { return conditionsOf(patch.InForce, "AsExpected") }
	b.publish(same(), 1, 0)
	b.hostWrites("False")
	b.has("Available=False  00:00:01")
	b.publish(same(), 0, status.ReassertInterval)

	b.clock.SetTime(b.clock.Now().Add(status.ReassertInterval - time.Second))
	b.publish(same(), 0, time.Second)
	b.clock.SetTime(b.clock.Now().Add(time.Second))
	b.publish(same(), 1, 0)
	b.hostWrites("True")
	b.publish(same(), 0, status.ReassertInterval)

	// Changed conditions are written at once.
	b.publish(conditionsOf(patch.NotNeeded, "NotNeeded"), 1, 0)
	b.has("Available=True  00:00:01", "SamplePatchFailing=False AsExpected 03:06:05", "SamplePatchInForce=False NotNeeded 03:06:05",
		"SamplePatchInProgress=False AsExpected 03:06:05")
}

// A clock that is set back delays a reassertion by no more than ReassertInterval.
func TestReassertWithAClockThatIsSetBack(t *testing.T) {
	b := newEnvironment(t)
	same := func() []operatorv1.OperatorCondition { return conditionsOf(patch.InForce, "AsExpected") }
	b.publish(same(), 1, 0)
	b.hostWrites("False")
	b.clock.SetTime(b.clock.Now().Add(-time.Hour))
	b.publish(same(), 0, status.ReassertInterval)
	b.clock.SetTime(b.clock.Now().Add(status.ReassertInterval))
	b.publish(same(), 1, 0)
}

func TestConditionsOfAnObjectThatIsGone(t *testing.T) {
	b := newEnvironment(t)
	target := b.live()
	patchtest.NoError(t, b.admin.Delete(t.Context(), b.object()))
	for _, u := range []*unstructured.Unstructured{target, nil} {
		if again, err := b.sink.Publish(t.Context(), u, conditionsOf(patch.InForce, "AsExpected")); again != 0 || err != nil {
			t.Errorf("%v: %v, %v", u, again, err)
		}
	}
}

func TestConditionsRefused(t *testing.T) {
	b := newEnvironment(t)
	b.sink.Client = b.server.Client(t, "unauthorized")
	for range 2 {
		if _, err := b.sink.Publish(t.Context(), b.live(), conditionsOf(patch.InForce, "AsExpected")); err == nil {
			t.Fatal("no error although nothing is permitted")
		}
	}
	b.sink.Client = b.server.Client(t, b.namespace, "system:masters")
	b.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
}

func TestConditionsOfADamagedStatus(t *testing.T) {
	for name, damaged := range map[string]any{
		"not a list":               "text",
		"not conditions":           []any{"text"},
		"a type that is no string": []any{map[string]any{"type": int64(7)}},
		"an invalid time":          []any{map[string]any{"type": "A", "lastTransitionTime": "yesterday"}},
		"a map":                    map[string]any{},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Sample", "status": map[string]any{"conditions": damaged}}}
		if got, err := status.Conditions(u); err == nil {
			t.Errorf("%s: no error, but %v", name, got)
		}
		if _, err := (&status.OperatorConditions{Module: "sample"}).Publish(context.Background(), u, nil); err == nil {
			t.Errorf("%s: no error from Publish", name)
		}
	}
	if got, err := status.Conditions(&unstructured.Unstructured{Object: map[string]any{}}); err != nil || len(got) > 0 {
		t.Errorf("no status: %v, %v", got, err)
	}
}
