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
	"github.com/solonode/sno/patch/status"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
)

var shared = apiserver.NewShared(apiserver.Options{CRDs: []string{crds.IngressControllers}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const host = "cluster-ingress-operator"

// operatorFixture is an operator's resource with one condition, and a sink with its own user.
type operatorFixture struct {
	*testing.T
	server    *apiserver.Server
	admin     client.Client
	namespace string
	sink      *status.OperatorConditions
	clock     *clocktesting.FakePassiveClock
}

func newOperatorFixture(t *testing.T) *operatorFixture {
	t.Helper()
	server := shared.Server(t)
	o := &operatorFixture{T: t, server: server, admin: server.Admin(t), namespace: server.Namespace(t),
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))}
	o.sink = &status.OperatorConditions{Client: server.Client(t, o.namespace, "system:masters"), Module: "sample"}
	o.sink.Now = o.clock.Now
	apiserver.NoError(t, o.admin.Create(t.Context(), o.object(), client.FieldOwner(host)))
	o.hostWrites("True")
	return o
}

func (o *operatorFixture) object() *operatorv1.IngressController {
	return &operatorv1.IngressController{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "default"}}
}

// hostWrites replaces the status by the host's condition.
func (o *operatorFixture) hostWrites(available operatorv1.ConditionStatus) {
	o.Helper()
	ic := o.object()
	apiserver.NoError(o, o.admin.Get(o.Context(), client.ObjectKeyFromObject(ic), ic))
	ic.Status.Conditions = []operatorv1.OperatorCondition{{Type: "Available", Status: available, LastTransitionTime: metav1.Unix(1, 0)}}
	apiserver.NoError(o, o.admin.Status().Update(o.Context(), ic, client.FieldOwner(host)))
}

func (o *operatorFixture) live() *unstructured.Unstructured {
	o.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("operator.openshift.io/v1")
	u.SetKind("IngressController")
	apiserver.NoError(o, o.admin.Get(o.Context(), client.ObjectKeyFromObject(o.object()), u))
	return u
}

func (o *operatorFixture) restart() {
	o.sink = &status.OperatorConditions{Client: o.sink.Client, Module: "sample"}
	o.sink.Now = o.clock.Now
}

// publish must send the number of requests and return the time.
func (o *operatorFixture) publish(conditions []operatorv1.OperatorCondition, requests int, again time.Duration) {
	o.Helper()
	target := o.live()
	var got time.Duration
	var err error
	writes := o.server.WritesDuring(o, o.namespace, func() { got, err = o.sink.Publish(o.Context(), target, conditions) })
	apiserver.NoError(o, err)
	if len(writes) != requests {
		o.Errorf("%d write requests, want %d: %v", len(writes), requests, writes)
	}
	if got != again {
		o.Errorf("call again after %v, want %v", got, again)
	}
}

// has compares all conditions, as "Type=Status Reason Time", sorted by type.
func (o *operatorFixture) has(want ...string) {
	o.Helper()
	conditions, err := status.Conditions(o.live())
	apiserver.NoError(o, err)
	var got []string
	for _, c := range conditions {
		got = append(got, c.Type+"="+string(c.Status)+" "+c.Reason+" "+c.LastTransitionTime.UTC().Format(time.TimeOnly))
	}
	slices.Sort(got) // the API server chooses the order
	if diff := cmp.Diff(want, got); diff != "" {
		o.Errorf("conditions (-want +got):\n%s", diff)
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
	o := newOperatorFixture(t)
	o.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	first := wantConditions
	o.has(first...)

	o.clock.SetTime(o.clock.Now().Add(time.Hour))
	o.publish(conditionsOf(patch.InForce, "AsExpected"), 0, 0)
	o.has(first...)

	// The transition time changes with the status, not with the reason.
	o.publish(conditionsOf(patch.InForce, "Changed"), 1, 0)
	o.has(first[0], first[1], "SamplePatchInForce=True Changed 03:04:05", first[3])
	o.publish(conditionsOf(patch.Blocked, "FieldOwnedByOther"), 1, 0)
	o.has(first[0], first[1], "SamplePatchInForce=False FieldOwnedByOther 04:04:05", first[3])

	o.restart()
	o.publish(conditionsOf(patch.Blocked, "FieldOwnedByOther"), 0, 0)
}

// Conditions of an earlier version with other types are removed.
func TestConditionsOfEarlierVersions(t *testing.T) {
	o := newOperatorFixture(t)
	applyEarlier := func(also ...any) {
		t.Helper()
		for _, suffix := range []string{"Degraded", "Progressing"} {
			also = append(also, map[string]any{
				"type": "Sample" + suffix, "status": "True", "reason": "Earlier", "lastTransitionTime": "1970-01-01T00:00:02Z",
			})
		}
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": also}}}
		u.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("IngressController"))
		u.SetNamespace(o.namespace)
		u.SetName("default")
		earlier := client.ApplyConfigurationFromUnstructured(u)
		apiserver.NoError(t, o.admin.Status().Apply(t.Context(), earlier, client.FieldOwner("sno.solonode.github.io/sample"), client.ForceOwnership))
		o.restart()
	}
	applyEarlier()
	o.has("Available=True  00:00:01", "SampleDegraded=True Earlier 00:00:02", "SampleProgressing=True Earlier 00:00:02")
	o.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	o.has(wantConditions...)
	o.publish(conditionsOf(patch.InForce, "AsExpected"), 0, 0)

	published, _, err := unstructured.NestedSlice(o.live().Object, "status", "conditions")
	apiserver.NoError(t, err)
	applyEarlier(slices.DeleteFunc(published, func(c any) bool { return c.(map[string]any)["type"] == "Available" })...)
	o.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
	o.has(wantConditions...)
}

// A host that updates its whole status removes the conditions (U-SSA-9). They are restored after ReassertInterval.
func TestDroppedConditionsComeBack(t *testing.T) {
	o := newOperatorFixture(t)
	same := func() []operatorv1.OperatorCondition { return conditionsOf(patch.InForce, "AsExpected") }
	o.publish(same(), 1, 0)
	o.hostWrites("False")
	o.has("Available=False  00:00:01")
	o.publish(same(), 0, status.ReassertInterval)

	o.clock.SetTime(o.clock.Now().Add(status.ReassertInterval - time.Second))
	o.publish(same(), 0, time.Second)
	o.clock.SetTime(o.clock.Now().Add(time.Second))
	o.publish(same(), 1, 0)
	o.hostWrites("True")
	o.publish(same(), 0, status.ReassertInterval)

	// Changed conditions are written at once.
	o.publish(conditionsOf(patch.NotNeeded, "NotNeeded"), 1, 0)
	o.has("Available=True  00:00:01", "SamplePatchFailing=False AsExpected 03:06:05", "SamplePatchInForce=False NotNeeded 03:06:05",
		"SamplePatchInProgress=False AsExpected 03:06:05")
}

func TestConditionsOfAnObjectThatIsGone(t *testing.T) {
	o := newOperatorFixture(t)
	target := o.live()
	apiserver.NoError(t, o.admin.Delete(t.Context(), o.object()))
	for _, u := range []*unstructured.Unstructured{target, nil} {
		if again, err := o.sink.Publish(t.Context(), u, conditionsOf(patch.InForce, "AsExpected")); again != 0 || err != nil {
			t.Errorf("%v: %v, %v", u, again, err)
		}
	}
}

func TestConditionsRefused(t *testing.T) {
	o := newOperatorFixture(t)
	o.sink.Client = o.server.Client(t, "unauthorized")
	for range 2 {
		if _, err := o.sink.Publish(t.Context(), o.live(), conditionsOf(patch.InForce, "AsExpected")); err == nil {
			t.Fatal("no error although nothing is permitted")
		}
	}
	o.sink.Client = o.server.Client(t, o.namespace, "system:masters")
	o.publish(conditionsOf(patch.InForce, "AsExpected"), 1, 0)
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
