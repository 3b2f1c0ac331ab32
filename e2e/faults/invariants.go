// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// Violation is a broken invariant.
type Violation struct{ Invariant, Text string }

func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// The invariants.
const (
	InvariantTwice     = "nothing is written twice"
	InvariantNeedless  = "no write repeats what is in place"
	InvariantEvicted   = "no pod is evicted twice"
	InvariantAnswered  = "a request is acknowledged once, after its drain"
	InvariantOneWriter = "an object of the cluster-version-operator is written only while it is claimed"
	InvariantKept      = "values of other clients stay"
	InvariantOwned     = "a field in force has its owner"
	InvariantReleased  = "a release leaves no field of the module"
	InvariantRestored  = "a release restores what was replaced"
	InvariantOrphan    = "no field is left without an owner"
	InvariantRest      = "nothing is written at rest"
	InvariantOldLeader = "a former leader overwrites nothing"
	InvariantSame      = "the objects are as without faults"
)

// isReport reports whether a write is no patch: an event, a Lease or a review.
func isReport(w Write) bool {
	return slices.Contains([]string{"events", "leases", "subjectaccessreviews", "selfsubjectaccessreviews", "tokenreviews"}, w.Object.Resource)
}

// WrittenTwice returns the writes of the controllers that repeat the effect of an earlier one, although no other client
// has written to the object in between. A write to the Infrastructure begins anew. Conditions are for ReportedTwice.
func WrittenTwice(writes []Write) []Violation {
	var found []Violation
	before := map[Object]map[string]Write{}
	for _, w := range writes {
		if w.Object == Infrastructure && w.Effective {
			clear(before)
		}
		if !w.Effective || isReport(w) || w.Object.Resource == "pods" || w.Subresource == statusSubresource {
			continue
		}
		if !w.ours() {
			delete(before, w.Object)
			continue
		}
		content := w.content()
		if first, is := before[w.Object][content]; is {
			found = append(found, Violation{InvariantTwice, fmt.Sprintf("%s repeats %s: %.300s", w, first, content)})
		}
		if before[w.Object] == nil {
			before[w.Object] = map[string]Write{}
		}
		before[w.Object][content] = w
	}
	return found
}

const statusSubresource = "status"

// ReportedTwice returns the conditions that a controller has written although they differed from the previous ones only
// by their times, and no other client has written to the status in between. After a lost answer, and with two leaders,
// that may happen.
func ReportedTwice(writes []Write) []Violation {
	var found []Violation
	before := map[Object]Write{}
	for _, w := range writes {
		if !w.Effective || w.Subresource != statusSubresource {
			continue
		}
		if first, is := before[w.Object]; is && w.ours() && first.content() == w.content() {
			found = append(found, Violation{InvariantTwice, fmt.Sprintf("%s repeats %s: %.300s", w, first, w.content())})
		}
		if delete(before, w.Object); w.ours() {
			before[w.Object] = w
		}
	}
	return found
}

// Needless returns the accepted writes of the controllers that changed nothing.
func Needless(writes []Write) []Violation {
	var found []Violation
	for _, w := range writes {
		if w.ours() && w.accepted() && !w.Effective && !isReport(w) {
			found = append(found, Violation{InvariantNeedless, w.String() + " changed nothing"})
		}
	}
	return found
}

// EvictedTwice returns evictions of pods that were evicted before. The names of pods must be unique. An eviction can
// take seconds, because the API server repeats it after a conflict about the budget. One that had not ended when the
// next process began does not count for that.
func EvictedTwice(writes []Write) []Violation {
	var found []Violation
	evicted := map[Object]Write{}
	began := map[string]time.Time{}
	for _, w := range writes {
		if at, is := began[w.Process]; !is || w.Received.Before(at) {
			began[w.Process] = w.Received
		}
	}
	for _, w := range writes {
		if !isEviction(w) || !w.ours() {
			continue
		}
		if first, is := evicted[w.Object]; is && (first.Process == w.Process || first.Ended.Before(began[w.Process])) {
			found = append(found, Violation{InvariantEvicted, fmt.Sprintf("%s repeats %s, which ended at %s", w, first, first.Ended.UTC().Format("15:04:05.000"))})
		}
		evicted[w.Object] = w
	}
	return found
}

func isEviction(w Write) bool {
	return w.Effective && w.Object.Resource == "pods" && w.Subresource == "eviction" && w.Verb == "create"
}

// DrainRequest is what a node requested.
type DrainRequest struct {
	Node    string
	Request machineconfig.Request
	// Evict are the pods to evict, as namespace/name. Drain reports whether the node is to be drained at all.
	Evict []string
	Drain bool
}

// Answered checks the writes of the controllers since a request.
func Answered(writes []Write, request DrainRequest) []Violation {
	var found []Violation
	add := func(format string, args ...any) {
		found = append(found, Violation{InvariantAnswered, fmt.Sprintf("node %s, %s: ", request.Node, request.Request) + fmt.Sprintf(format, args...)})
	}
	var answers []Write
	for _, w := range writes {
		if w.Object.Resource == "nodes" && w.ours() && w.Effective && acknowledgement(w) != "" {
			answers = append(answers, w)
			if got := acknowledgement(w); w.Object.Name != request.Node || got != request.Request.String() {
				add("%s acknowledges %s", w, got)
			}
		}
	}
	if len(answers) != 1 {
		add("acknowledged %d times", len(answers))
		return found
	}
	evicted := sets.New[string]()
	for _, w := range writes {
		isNode := w.Object.Resource == "nodes" && w.Object.Name == request.Node && w.Effective && w.ours() && acknowledgement(w) == ""
		switch pod := w.Object.Namespace + "/" + w.Object.Name; {
		case isNode && !request.Drain && request.Request.Verb == machineconfig.VerbDrain:
			add("%s, but the node is not to be drained", w)
		case isEviction(w) && w.ours() && (!request.Drain || request.Request.Verb != machineconfig.VerbDrain):
			add("%s, but the node is not to be drained", w)
		case isEviction(w) || w.Effective && w.Object.Resource == "pods" && w.Verb == "delete":
			if w.Received.Before(answers[0].Received) {
				evicted.Insert(pod)
			}
		}
	}
	for _, pod := range request.Evict {
		if !evicted.Has(pod) {
			add("pod %s was not evicted before the acknowledgement", pod)
		}
	}
	return found
}

func acknowledgement(w Write) string {
	body, ok := w.Body.(map[string]any)
	if !ok || w.Manager != decision.FieldOwner {
		return ""
	}
	text, _, _ := unstructured.NestedString(body, "metadata", "annotations", machineconfig.LastAppliedDrainAnnotation)
	return text
}

// Claim is an object that the cluster-version-operator writes unless an entry in spec.overrides makes it unmanaged.
type Claim struct {
	Object Object
	Kind   string
}

// ClusterVersion is the ClusterVersion in the audit log.
var ClusterVersion = Object{Group: "config.openshift.io", Resource: "clusterversions", Name: "version"}

// Infrastructure is the object with the topology in the audit log.
var Infrastructure = Object{Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"}

// OneWriter returns writes of the controllers to objects that they had not claimed, or whose claim the
// cluster-version-operator had not observed. version is the ClusterVersion before the writes.
func OneWriter(version *unstructured.Unstructured, writes []Write, claims ...Claim) []Violation {
	var found []Violation
	since := make([]int64, len(claims)) // the generation with which the claim began; 0 without one
	observed := int64(0)
	read := func(v *unstructured.Unstructured) {
		for i, claim := range claims {
			if !hasEntry(v, claim) {
				since[i] = 0
			} else if since[i] == 0 {
				since[i] = v.GetGeneration()
			}
		}
		seen, _, _ := unstructured.NestedInt64(v.Object, "status", "observedGeneration")
		observed = max(observed, seen)
	}
	if version != nil {
		read(version)
	}
	for _, w := range writes {
		if w.Object == ClusterVersion && w.Effective && w.Result != nil {
			read(w.Result)
		}
		for i, claim := range claims {
			if w.Object == claim.Object && w.Subresource == "" && w.Effective && w.ours() && (since[i] == 0 || observed < since[i]) {
				found = append(found, Violation{InvariantOneWriter, fmt.Sprintf("%s: claimed by generation %d of the ClusterVersion, observed %d", w, since[i], observed)})
			}
		}
	}
	return found
}

func hasEntry(version *unstructured.Unstructured, claim Claim) bool {
	entries, _, _ := unstructured.NestedSlice(version.Object, "spec", "overrides")
	return slices.ContainsFunc(entries, func(each any) bool {
		entry, ok := each.(map[string]any)
		return ok && entry["unmanaged"] == true && entry["kind"] == claim.Kind && entry["name"] == claim.Object.Name && entry["namespace"] == claim.Object.Namespace
	})
}

// Value is a value that another client has set.
type Value struct {
	Object Object
	Path   fieldpath.Path
	Value  any
}

// Kept returns versions of the object in which the value was not set, and the writes that made them.
func Kept(writes []Write, kept ...Value) []Violation {
	var found []Violation
	for _, w := range writes {
		for _, v := range kept {
			if w.Object != v.Object || !w.Effective || w.Result == nil {
				continue
			}
			if got, is := lookup(w.Result.Object, v.Path); !is || !reflect.DeepEqual(got, v.Value) {
				found = append(found, Violation{InvariantKept, fmt.Sprintf("%s is %v after %s, want %v", v.Path, got, w, v.Value)})
			}
		}
	}
	return found
}

// Owned returns the fields of a module that have no value, or that its field owner does not own.
func Owned(live *unstructured.Unstructured, module string, fields ...fieldpath.Path) []Violation {
	var found []Violation
	for _, field := range fields {
		managers, err := ownership.ManagersAt(live, field)
		_, is := lookup(live.Object, field)
		if err != nil || !is || !slices.Contains(managers, patch.FieldOwner(module)) {
			found = append(found, Violation{InvariantOwned, fmt.Sprintf("%s of %s %s has a value: %t, owners %v, want %s (%v)",
				field, live.GetKind(), live.GetName(), is, managers, patch.FieldOwner(module), err)})
		}
	}
	return found
}

// Restored returns values that a release did not restore, or not under the name of their owner.
func Restored(live *unstructured.Unstructured, manager string, values ...Value) []Violation {
	var found []Violation
	for _, v := range values {
		got, _ := lookup(live.Object, v.Path)
		managers, err := ownership.ManagersAt(live, v.Path)
		if err != nil || !reflect.DeepEqual(got, v.Value) || !slices.Equal(managers, []string{manager}) {
			found = append(found, Violation{InvariantRestored, fmt.Sprintf("%s of %s is %v of %v, want %v of %s (%v)",
				v.Path, v.Object, got, managers, v.Value, manager, err)})
		}
	}
	return found
}

// Released returns what a module has left in an object. live is nil if the object does not exist.
func Released(live *unstructured.Unstructured, module string) []Violation {
	if live == nil {
		return nil
	}
	var found []Violation
	if ownership.ManagedBy(live, patch.FieldOwner(module)) {
		found = append(found, Violation{InvariantReleased, fmt.Sprintf("%s still owns fields of %s %s", patch.FieldOwner(module), live.GetKind(), live.GetName())})
	}
	if kept, is := live.GetAnnotations()[patch.ReplacedAnnotation(module)]; is {
		found = append(found, Violation{InvariantReleased, fmt.Sprintf("%s %s still has %s: %s", live.GetKind(), live.GetName(), patch.ReplacedAnnotation(module), kept)})
	}
	return found
}

// Orphans returns fields of the live object that the module owned in an earlier version and that nobody owns now.
// history has the writes of the object.
func Orphans(history []Write, live *unstructured.Unstructured, module string) []Violation {
	var found []Violation
	seen := sets.New[string]()
	for _, w := range history {
		if w.Result == nil || w.Result.GetUID() != live.GetUID() {
			continue
		}
		own, err := ownership.Applied(w.Result, patch.FieldOwner(module), "")
		if err != nil {
			found = append(found, Violation{InvariantOrphan, fmt.Sprintf("after %s: %v", w, err)})
			continue
		}
		own.Leaves().Iterate(func(path fieldpath.Path) {
			if seen.Has(path.String()) {
				return
			}
			seen.Insert(path.String())
			_, is := lookup(live.Object, path)
			managers, err := ownership.ManagersAt(live, path)
			if is && (err != nil || len(managers) == 0) {
				found = append(found, Violation{InvariantOrphan, fmt.Sprintf("%s of %s %s, which %s owned after %s, has no owner (%v)",
					path, live.GetKind(), live.GetName(), patch.FieldOwner(module), w, err)})
			}
		})
	}
	return found
}

// lookup returns the value at a path, which may lead through elements of lists.
func lookup(content any, path fieldpath.Path) (any, bool) {
	for _, element := range path {
		switch inside := content.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, false
			}
			var is bool
			if content, is = inside[*element.FieldName]; !is {
				return nil, false
			}
		case []any:
			at := slices.IndexFunc(inside, func(item any) bool { return isElement(item, element) })
			if at < 0 {
				return nil, false
			}
			content = inside[at]
		default:
			return nil, false
		}
	}
	return content, true
}

func isElement(item any, element fieldpath.PathElement) bool {
	switch {
	case element.Value != nil:
		return value.Equals(value.NewValueInterface(item), *element.Value)
	case element.Key != nil:
		fields, ok := item.(map[string]any)
		return ok && !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
			return !value.Equals(value.NewValueInterface(fields[key.Name]), key.Value)
		})
	}
	return false
}

// AtRest returns all writes of the controllers but renewals of Leases.
func AtRest(writes []Write) []Violation {
	var found []Violation
	for _, w := range writes {
		if w.ours() && w.Object.Resource != "leases" {
			found = append(found, Violation{InvariantRest, w.String()})
		}
	}
	return found
}

// LateWrites returns the effective writes that a process made after it had lost its Lease. Reports do not count, nor
// does the creation of an object, which no resourceVersion can prevent: the next leader deletes it.
func LateWrites(writes []Write, process string) []Write {
	return slices.DeleteFunc(slices.Clone(writes), func(w Write) bool {
		return w.Process != process || !w.Effective || isReport(w) || w.Subresource == statusSubresource || creates(w)
	})
}

// FormerLeader returns the LateWrites that are not bound to the version that the process has read: they may have
// overwritten what the next leader wrote. One that is bound may still follow from a topology that has changed since,
// because the caches of a process do not catch up at the same time. The next leader reverts it.
func FormerLeader(writes []Write, process string) []Violation {
	var found []Violation
	for _, w := range LateWrites(writes, process) {
		if !isBound(w) {
			found = append(found, Violation{InvariantOldLeader, w.String()})
		}
	}
	return found
}

// isBound reports whether the request names the version of the object.
func isBound(w Write) bool {
	body, ok := w.Body.(map[string]any)
	if !ok {
		return false
	}
	in := "metadata"
	if w.Verb == "delete" {
		in = "preconditions"
	}
	version, _, _ := unstructured.NestedString(body, in, "resourceVersion")
	return version != ""
}

func creates(w Write) bool { return w.Code == http.StatusCreated && w.Subresource == "" }

// busiest returns the target with the most writes.
func busiest(writes map[string]int) (target string, most int) {
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		if writes[name] > most {
			target, most = name, writes[name]
		}
	}
	return target, most
}

func texts(violations []Violation) string {
	lines := make([]string, len(violations))
	for i, v := range violations {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}
