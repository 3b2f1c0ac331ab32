// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
)

const (
	controllers = "system:serviceaccount:sno-system:sno-controllers"
	stock       = "cluster-version-operator"
)

// check compares the invariants that are broken.
func check(t *testing.T, name string, got []Violation, want ...string) {
	t.Helper()
	var names []string
	for _, v := range got {
		names = append(names, v.Invariant)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s: broken: %q, want %q\n%s", name, names, want, texts(got))
	}
}

// wrote is an accepted write of the controllers to an object.
func wrote(o Object, body map[string]any, changes ...func(*Write)) Write {
	w := Write{User: controllers, Process: "p#1", Verb: "patch", Object: o, Code: 200, Effective: true, Body: body, Received: began}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func by(user string) func(*Write) {
	return func(w *Write) { w.User, w.Process = user, "" }
}
func status(w *Write)      { w.Subresource = "status" }
func ineffective(w *Write) { w.Effective = false }
func at(ms int) func(*Write) {
	return func(w *Write) { w.Received = began.Add(time.Duration(ms) * time.Millisecond) }
}

var (
	deployment = Object{"apps", "deployments", "n", "d"}
	one        = map[string]any{"spec": map[string]any{"replicas": int64(1)}}
	two        = map[string]any{"spec": map[string]any{"replicas": int64(2)}}
)

func TestWrittenTwice(t *testing.T) {
	twice := InvariantTwice
	check(t, "once", WrittenTwice([]Write{wrote(deployment, one), wrote(deployment, two)}))
	check(t, "twice", WrittenTwice([]Write{wrote(deployment, one), wrote(deployment, one)}), twice)
	check(t, "forth and back", WrittenTwice([]Write{wrote(deployment, one), wrote(deployment, two), wrote(deployment, one)}), twice)
	check(t, "by another process", WrittenTwice([]Write{wrote(deployment, one), wrote(deployment, one, func(w *Write) { w.Process = "p#2" })}), twice)
	check(t, "without effect", WrittenTwice([]Write{wrote(deployment, one), wrote(deployment, one, ineffective)}))
	check(t, "after another client", WrittenTwice([]Write{wrote(deployment, one), wrote(deployment, two, by(stock)), wrote(deployment, one)}))
	check(t, "after a status of another client", WrittenTwice([]Write{wrote(deployment, one), wrote(deployment, two, by(stock), status), wrote(deployment, one)}), twice)
	check(t, "after a change of the topology", WrittenTwice([]Write{wrote(deployment, one), wrote(Infrastructure, nil, by("a"), status), wrote(deployment, one)}))
	check(t, "other objects", WrittenTwice([]Write{wrote(deployment, one), wrote(guardObject.Object, one)}))
	check(t, "by others", WrittenTwice([]Write{wrote(deployment, one, by(stock)), wrote(deployment, one, by(stock))}))
	check(t, "conditions", WrittenTwice([]Write{wrote(deployment, one, status), wrote(deployment, one, status)}))
}

func TestReportedTwice(t *testing.T) {
	twice := InvariantTwice
	check(t, "once", ReportedTwice([]Write{wrote(deployment, one, status), wrote(deployment, two, status)}))
	check(t, "after a status of another client", ReportedTwice([]Write{wrote(deployment, one, status), wrote(deployment, two, by(stock), status), wrote(deployment, one, status)}))
	check(t, "by others", ReportedTwice([]Write{wrote(deployment, one, by(stock), status), wrote(deployment, one, by(stock), status)}))
	check(t, "patches", ReportedTwice([]Write{wrote(deployment, one), wrote(deployment, one)}))
	check(t, "a condition that returns", ReportedTwice([]Write{wrote(deployment, one, status), wrote(deployment, two, status), wrote(deployment, one, status)}))
	check(t, "a condition that is repeated", ReportedTwice([]Write{wrote(deployment, one, status), wrote(deployment, one, status)}), twice)
}

func TestNeedless(t *testing.T) {
	check(t, "effective", Needless([]Write{wrote(deployment, one)}))
	check(t, "not", Needless([]Write{wrote(deployment, one, ineffective)}), InvariantNeedless)
	check(t, "refused", Needless([]Write{wrote(deployment, one, ineffective, func(w *Write) { w.Code = 409 })}))
	check(t, "dry run", Needless([]Write{wrote(deployment, one, ineffective, func(w *Write) { w.DryRun = true })}))
	check(t, "by others", Needless([]Write{wrote(deployment, one, ineffective, by(stock))}))
}

func evicted(pod string, changes ...func(*Write)) Write {
	return wrote(Object{"", "pods", "n", pod}, nil, append([]func(*Write){func(w *Write) { w.Verb, w.Subresource, w.Code = "create", "eviction", 201 }}, changes...)...)
}

func TestEvictedTwice(t *testing.T) {
	refused := func(w *Write) { w.Code, w.Effective = 429, false }
	check(t, "once each", EvictedTwice([]Write{evicted("a"), evicted("b")}))
	check(t, "twice", EvictedTwice([]Write{evicted("a"), evicted("b"), evicted("a")}), InvariantEvicted)
	ends := func(ms int) func(*Write) {
		return func(w *Write) { w.Ended = began.Add(time.Duration(ms) * time.Millisecond) }
	}
	next := func(w *Write) { w.Process = "p#2" }
	lease := wrote(Object{"coordination.k8s.io", "leases", "n", "l"}, nil, at(500), next)
	check(t, "again by the next process", EvictedTwice([]Write{evicted("a", ends(400)), lease, evicted("a", at(600), next)}), InvariantEvicted)
	check(t, "in progress when the next process begins", EvictedTwice([]Write{evicted("a", ends(800)), lease, evicted("a", at(600), next)}))
	check(t, "in progress, by the same process", EvictedTwice([]Write{evicted("a", ends(800)), evicted("a", at(600))}), InvariantEvicted)
	check(t, "refused before", EvictedTwice([]Write{evicted("a", refused), evicted("a")}))
}

func TestAnswered(t *testing.T) {
	node := Object{"", "nodes", "", "worker"}
	drain := machineconfig.Request{Verb: machineconfig.VerbDrain, Config: "one"}
	uncordon := machineconfig.Request{Verb: machineconfig.VerbUncordon, Config: "one"}
	answer := func(on Object, r machineconfig.Request, ms int) Write {
		body := map[string]any{"metadata": map[string]any{"annotations": map[string]any{machineconfig.LastAppliedDrainAnnotation: r.String()}}}
		return wrote(on, body, at(ms), func(w *Write) { w.Manager = decision.FieldOwner })
	}
	cordon := wrote(node, map[string]any{"spec": map[string]any{"unschedulable": true}})
	request := DrainRequest{Node: "worker", Request: drain, Evict: []string{"n/a", "n/b"}, Drain: true}
	notNeeded := DrainRequest{Node: "worker", Request: drain}
	back := DrainRequest{Node: "worker", Request: uncordon}
	is := InvariantAnswered
	check(t, "drained", Answered([]Write{cordon, evicted("a"), evicted("b"), answer(node, drain, 9)}, request))
	check(t, "a pod was deleted by another client", Answered([]Write{
		cordon, evicted("a"), wrote(Object{"", "pods", "n", "b"}, nil, by(stock), func(w *Write) { w.Verb = "delete" }), answer(node, drain, 9),
	}, request))
	check(t, "a pod is left", Answered([]Write{cordon, evicted("a"), answer(node, drain, 9)}, request), is)
	check(t, "a pod is evicted later", Answered([]Write{cordon, evicted("a"), answer(node, drain, 5), evicted("b", at(9))}, request), is)
	check(t, "no answer", Answered([]Write{cordon, evicted("a"), evicted("b")}, request), is)
	check(t, "two answers", Answered([]Write{cordon, evicted("a"), evicted("b"), answer(node, drain, 8), answer(node, drain, 9)}, request), is)
	check(t, "another answer", Answered([]Write{cordon, evicted("a"), evicted("b"), answer(node, uncordon, 9)}, request), is)
	check(t, "another node", Answered([]Write{cordon, evicted("a"), evicted("b"), answer(Object{"", "nodes", "", "other"}, drain, 9)}, request), is)
	check(t, "not needed", Answered([]Write{answer(node, drain, 9)}, notNeeded))
	check(t, "not needed, but cordoned", Answered([]Write{cordon, answer(node, drain, 9)}, notNeeded), is)
	check(t, "not needed, but evicted", Answered([]Write{evicted("a"), answer(node, drain, 9)}, notNeeded), is)
	check(t, "uncordoned", Answered([]Write{cordon, answer(node, uncordon, 9)}, back))
	check(t, "evicted by an uncordon", Answered([]Write{evicted("a"), answer(node, uncordon, 9)}, back), is)
}

// versionOf is a version of the ClusterVersion with entries for claims.
func versionOf(generation, observed int64, entries ...Claim) *unstructured.Unstructured {
	list := []any{}
	for _, e := range entries {
		list = append(list, map[string]any{"kind": e.Kind, "namespace": e.Object.Namespace, "name": e.Object.Name, "unmanaged": true})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": generation}, "spec": map[string]any{"overrides": list}, "status": map[string]any{"observedGeneration": observed},
	}}
}

func result(u *unstructured.Unstructured) func(*Write) { return func(w *Write) { w.Result = u } }

func TestOneWriter(t *testing.T) {
	downloads, guard := claims()[0], claims()[1]
	version := func(u *unstructured.Unstructured) Write { return wrote(ClusterVersion, nil, by(stock), result(u)) }
	shape := wrote(downloadsObject.Object, one)
	is := InvariantOneWriter
	check(t, "claimed and observed before", OneWriter(versionOf(2, 2, downloads), []Write{shape}, claims()...))
	check(t, "not claimed", OneWriter(versionOf(2, 2), []Write{shape}, claims()...), is)
	check(t, "claim of another object", OneWriter(versionOf(2, 2, guard), []Write{shape}, claims()...), is)
	check(t, "claimed, then observed", OneWriter(versionOf(2, 2), []Write{version(versionOf(3, 2, downloads)), version(versionOf(3, 3, downloads)), shape}, claims()...))
	check(t, "claimed, not observed", OneWriter(versionOf(2, 2), []Write{version(versionOf(3, 2, downloads)), shape}, claims()...), is)
	check(t, "another claim since", OneWriter(versionOf(2, 2, downloads), []Write{version(versionOf(3, 2, downloads, guard)), shape}, claims()...))
	check(t, "released in order", OneWriter(versionOf(2, 2, downloads), []Write{shape, version(versionOf(3, 2))}, claims()...))
	check(t, "released in the wrong order", OneWriter(versionOf(2, 2, downloads), []Write{version(versionOf(3, 2)), shape}, claims()...), is)
	check(t, "claimed again, not observed", OneWriter(versionOf(2, 2, downloads), []Write{version(versionOf(3, 2)), version(versionOf(4, 3, downloads)), shape}, claims()...), is)
	check(t, "by the operator", OneWriter(versionOf(2, 2), []Write{wrote(downloadsObject.Object, one, by(stock))}, claims()...))
	check(t, "deleted", OneWriter(versionOf(2, 2), []Write{wrote(guardObject.Object, nil, func(w *Write) { w.Verb = "delete" })}, claims()...), is)
}

// owned is a Deployment with fields and their owners, as JSON of managedFields.
func owned(spec, annotations map[string]any, owners map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "d", "uid": "1"}, "spec": spec}}
	if annotations != nil {
		_ = unstructured.SetNestedMap(u.Object, annotations, "metadata", "annotations") // the maps around it exist
	}
	var entries []metav1.ManagedFieldsEntry
	for manager, fields := range owners {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		})
	}
	u.SetManagedFields(entries)
	return u
}

func TestKept(t *testing.T) {
	entry := func(unmanaged bool) map[string]any {
		return map[string]any{"overrides": []any{map[string]any{"kind": "Deployment", "group": "apps", "namespace": "n", "name": "d", "unmanaged": unmanaged}}}
	}
	kept := []Value{
		{deployment, field("spec", "replicas"), int64(1)},
		{ClusterVersion, append(overrideEntry("Deployment", "apps", "n", "d"), field("unmanaged")...), true},
	}
	write := func(o Object, spec map[string]any) Write { return wrote(o, nil, result(owned(spec, nil, nil))) }
	is := InvariantKept
	check(t, "kept", Kept([]Write{write(deployment, map[string]any{"replicas": int64(1)}), write(ClusterVersion, entry(true))}, kept...))
	check(t, "changed", Kept([]Write{write(deployment, map[string]any{"replicas": int64(2)})}, kept...), is)
	check(t, "removed", Kept([]Write{write(deployment, map[string]any{})}, kept...), is)
	check(t, "entry changed", Kept([]Write{write(ClusterVersion, entry(false))}, kept...), is)
	check(t, "entry removed", Kept([]Write{write(ClusterVersion, map[string]any{"overrides": []any{}})}, kept...), is)
	check(t, "removed and set again", Kept([]Write{write(deployment, map[string]any{}), write(deployment, map[string]any{"replicas": int64(1)})}, kept...), is)
}

func TestOwners(t *testing.T) {
	const module = "console"
	owner, replicas := patch.FieldOwner(module), `{"f:spec":{"f:replicas":{}}}`
	spec := map[string]any{"replicas": int64(1)}
	replaced := map[string]any{patch.ReplacedAnnotation(module): `[]`}
	inForce := owned(spec, nil, map[string]string{owner: replicas})
	byOther := owned(spec, nil, map[string]string{stock: replicas})
	byNone := owned(spec, nil, map[string]string{stock: `{"f:spec":{"f:paused":{}}}`})
	absent := owned(map[string]any{}, nil, map[string]string{stock: `{"f:spec":{"f:paused":{}}}`})
	path := field("spec", "replicas")

	check(t, "in force", Owned(inForce, module, path))
	check(t, "owned by another client", Owned(byOther, module, path), InvariantOwned)
	check(t, "owned by nobody", Owned(byNone, module, path), InvariantOwned)
	check(t, "without a value", Owned(owned(map[string]any{}, nil, map[string]string{owner: replicas}), module, path), InvariantOwned)

	check(t, "released", Released(byOther, module))
	check(t, "deleted", Released(nil, module))
	check(t, "not released", Released(inForce, module), InvariantReleased)
	check(t, "replaced value not restored", Released(owned(spec, replaced, map[string]string{stock: replicas}), module), InvariantReleased)

	history := []Write{wrote(deployment, one, result(inForce))}
	check(t, "still owned", Orphans(history, inForce, module))
	check(t, "handed over", Orphans(history, byOther, module))
	check(t, "removed", Orphans(history, absent, module))
	check(t, "orphaned", Orphans(history, byNone, module), InvariantOrphan)
	check(t, "never owned", Orphans([]Write{wrote(deployment, one, result(byOther))}, byNone, module))
	recreated := byNone.DeepCopy()
	recreated.SetUID("2")
	check(t, "of a former object", Orphans(history, recreated, module))
}

// The order of overrides does not count, other contents do.
func TestContentOfObjects(t *testing.T) {
	spec := func(names ...any) *unstructured.Unstructured {
		return owned(map[string]any{"overrides": names}, map[string]any{"deployment.kubernetes.io/revision": fmt.Sprint(len(names), names)}, nil)
	}
	a, b := map[string]any{"name": "a", "kind": "Deployment"}, map[string]any{"name": "b", "kind": "Deployment"}
	if contentOf(spec(a, b)) != contentOf(spec(b, a)) {
		t.Error("the order counts")
	}
	if contentOf(spec(a, b)) == contentOf(spec(a)) {
		t.Error("the entries do not count")
	}
}

func TestRestored(t *testing.T) {
	replicas := Value{deployment, field("spec", "replicas"), int64(1)}
	live := func(n int64, manager string) *unstructured.Unstructured {
		return owned(map[string]any{"replicas": n}, nil, map[string]string{manager: `{"f:spec":{"f:replicas":{}}}`})
	}
	check(t, "restored", Restored(live(1, person), person, replicas))
	check(t, "another value", Restored(live(2, person), person, replicas), InvariantRestored)
	check(t, "another owner", Restored(live(1, stock), person, replicas), InvariantRestored)
	check(t, "no value", Restored(owned(map[string]any{}, nil, nil), person, replicas), InvariantRestored)
}

func TestOrphanedListElement(t *testing.T) {
	const module = "console"
	entry := map[string]any{"kind": "Deployment", "group": "apps", "namespace": "n", "name": "d", "unmanaged": true}
	key := `k:{\"group\":\"apps\",\"kind\":\"Deployment\",\"name\":\"d\",\"namespace\":\"n\"}`
	fields := `{"f:spec":{"f:overrides":{"` + key + `":{".":{},"f:group":{},"f:kind":{},"f:name":{},"f:namespace":{},"f:unmanaged":{}}}}}`
	spec := map[string]any{"overrides": []any{entry}}
	claimed := owned(spec, nil, map[string]string{patch.FieldOwner(module): fields})
	check(t, "owned", Owned(claimed, module, overrideEntry("Deployment", "apps", "n", "d")))
	check(t, "orphaned", Orphans([]Write{wrote(ClusterVersion, nil, result(claimed))}, owned(spec, nil, map[string]string{stock: `{"f:spec":{"f:channel":{}}}`}), module),
		slices.Repeat([]string{InvariantOrphan}, 5)...)
}

func TestAtRest(t *testing.T) {
	check(t, "a Lease", AtRest([]Write{wrote(Object{"coordination.k8s.io", "leases", "n", "l"}, nil)}))
	check(t, "a patch", AtRest([]Write{wrote(deployment, one, ineffective)}), InvariantRest)
	check(t, "by others", AtRest([]Write{wrote(deployment, one, by(stock))}))
}

func TestFormerLeader(t *testing.T) {
	check(t, "another process", FormerLeader([]Write{wrote(deployment, one)}, "p#2"))
	bound := map[string]any{"resourceVersion": "7"}
	removes := func(w *Write) { w.Verb = "delete" }
	check(t, "effective", FormerLeader([]Write{wrote(deployment, one)}, "p#1"), InvariantOldLeader)
	check(t, "bound", FormerLeader([]Write{wrote(deployment, map[string]any{"metadata": bound})}, "p#1"))
	check(t, "a deletion", FormerLeader([]Write{wrote(deployment, map[string]any{"metadata": bound}, removes)}, "p#1"), InvariantOldLeader)
	check(t, "a bound deletion", FormerLeader([]Write{wrote(deployment, map[string]any{"preconditions": bound}, removes)}, "p#1"))
	if got := len(LateWrites([]Write{wrote(deployment, map[string]any{"metadata": bound}), wrote(deployment, one, status)}, "p#1")); got != 1 {
		t.Errorf("%d late writes, want one", got)
	}
	check(t, "a creation", FormerLeader([]Write{wrote(deployment, one, func(w *Write) { w.Code = 201 })}, "p#1"))
	check(t, "an eviction", FormerLeader([]Write{evicted("a")}, "p#1"), InvariantOldLeader)
	check(t, "without effect", FormerLeader([]Write{wrote(deployment, one, ineffective)}, "p#1"))
	check(t, "a report", FormerLeader([]Write{wrote(deployment, one, status), wrote(Object{"events.k8s.io", "events", "n", "e"}, nil)}, "p#1"))
}

func TestBusiest(t *testing.T) {
	if target, most := busiest(map[string]int{"PATCH a": 9, "PATCH b": 10, "PATCH c": 10}); target != "PATCH b" || most != 10 {
		t.Errorf("%d of %s", most, target)
	}
	if target, most := busiest(nil); target != "" || most != 0 {
		t.Errorf("%d of %s", most, target)
	}
}
