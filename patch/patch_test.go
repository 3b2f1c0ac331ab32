// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/topology"
)

func TestStatesAreInOrderAndNamed(t *testing.T) {
	want := "[InForce NotNeeded OptedOut WouldChange Progressing Waiting Blocked Reverted Failed]"
	if states := patch.States(); !slices.IsSorted(states) || fmt.Sprint(states) != want {
		t.Errorf("states are %v, want %v in order of severity", states, want)
	}
	for _, unknown := range []patch.State{patch.Failed + 1, 99} {
		if got := unknown.String(); got != fmt.Sprintf("State(%d)", unknown) {
			t.Errorf("an unknown state is %q", got)
		}
	}
}

func TestWorst(t *testing.T) {
	for _, a := range patch.States() {
		for _, b := range patch.States() {
			first, second := patch.Result{State: a, Message: "first"}, patch.Result{State: b, Message: "second"}
			want := first
			if b > a {
				want = second
			}
			if got := patch.Worst(first, second); got != want {
				t.Errorf("Worst(%s, %s) is %v", a, b, got)
			}
		}
	}
	if got := patch.Worst(); got.String() != "InForce" {
		t.Errorf("Worst() is %v", got)
	}
}

func TestOK(t *testing.T) {
	ok := map[patch.State]bool{patch.InForce: true, patch.NotNeeded: true, patch.OptedOut: true}
	for _, state := range append(patch.States(), 99) {
		if got := (patch.Result{State: state}).OK(); got != ok[state] {
			t.Errorf("%s: OK is %t, want %t", state, got, ok[state])
		}
	}
}

func TestConditions(t *testing.T) {
	for _, state := range patch.States() {
		for _, persistent := range []bool{false, true} {
			failing, progressing, inForce := "False AsExpected Nothing is failing", "False AsExpected Nothing is in progress", "False TheReason The message"
			if persistent && (state == patch.Failed || state == patch.Reverted) {
				failing = "True TheReason The message"
			}
			if state == patch.Progressing {
				progressing = "True TheReason The message"
			}
			if state == patch.Progressing || state == patch.InForce {
				inForce = "True TheReason The message"
			}
			want := []string{"SamplePatchFailing=" + failing, "SamplePatchInProgress=" + progressing, "SamplePatchInForce=" + inForce}
			var got []string
			for _, c := range (patch.Result{State: state, Reason: "TheReason", Message: "The message"}).Conditions("Sample", persistent) {
				got = append(got, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, persistent %t (-want +got):\n%s", state, persistent, diff)
			}
		}
	}
	conditions := (patch.Result{}).Conditions("Sample", true)
	if conditions[2].Reason != patch.ReasonAsExpected {
		t.Errorf("a condition without a reason: %+v", conditions[2])
	}
	if conditions[0].Type != patch.FailingCondition("Sample") || conditions[2].Type != patch.InForceCondition("Sample") {
		t.Errorf("the types are %q and %q", conditions[0].Type, conditions[2].Type)
	}
	// A test in examples/ingress-operator-library-go asks library-go, which copies conditions with these suffixes.
	for _, c := range conditions {
		for _, suffix := range []string{"Degraded", "Progressing", "Available", "Upgradeable", "EvaluationConditionsDetected"} {
			if strings.HasSuffix(c.Type, suffix) {
				t.Errorf("%s ends in %s", c.Type, suffix)
			}
		}
	}
}

func TestTransition(t *testing.T) {
	events := map[patch.State]string{
		patch.InForce: "Normal Patch", patch.NotNeeded: "Normal Release", patch.OptedOut: "Normal Release", patch.WouldChange: "Normal Patch",
		patch.Progressing: "Normal Patch", patch.Waiting: "Normal Wait", patch.Blocked: "Warning Patch", patch.Reverted: "Warning Patch",
		patch.Failed: "Warning Patch",
	}
	for _, state := range patch.States() {
		quiet := state == patch.NotNeeded || state == patch.OptedOut
		for previous, want := range map[string]string{
			"Before": events[state], "Now": " ", "": map[bool]string{true: " ", false: events[state]}[quiet],
		} {
			eventType, action := (patch.Result{State: state, Reason: "Now", Message: "The message"}).Transition(previous)
			if got := eventType + " " + action; got != want {
				t.Errorf("%s after the reason %q: %q, want %q", state, previous, got, want)
			}
		}
	}
}

func TestOptsOut(t *testing.T) {
	tests := map[string]bool{
		"": false, "ingress": true, "all": true, "true": true, "console": false, "console,ingress": true, " console , ingress ": true,
		"ingressx": false, "Ingress": false, "console,,": false, "false": false,
	}
	for value, want := range tests {
		if got := patch.OptsOut(annotated(optOut, value), "ingress"); got != want {
			t.Errorf("%q opts ingress out: %t, want %t", value, got, want)
		}
	}
	if patch.OptsOut(&corev1.Node{}, "ingress") || patch.OptsOut(annotated("opt-out", "all"), "ingress") {
		t.Error("without the annotation no module is opted out")
	}
}

const optOut = "sno.solonode.github.io/opt-out"

// annotated returns an object with an annotation and its owners.
func annotated(key, value string, owners ...metav1.ManagedFieldsEntry) *corev1.Node {
	for i := range owners {
		owners[i].FieldsV1 = &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:annotations":{".":{},"f:` + key + `":{}}}}`)}
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}, ManagedFields: owners}}
}

func ownerOf(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource}
}

// Who may write only a subresource decides nothing about the rest of the object, whatever manager he names.
func TestAnnotationsOfASubresource(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	own, module := patch.FieldOwner("ingress"), ownerOf(patch.FieldOwner("ingress"), apply, "")
	replaced := `[{"field":".spec.replicas","manager":"oc","value":2}]`
	for name, test := range map[string]struct {
		owners []metav1.ManagedFieldsEntry
		optOut bool
		read   int // entries, -1 for an ErrReplacedAnnotation
	}{
		"the module":                      {[]metav1.ManagedFieldsEntry{module}, true, 1},
		"the module, copied by a person":  {[]metav1.ManagedFieldsEntry{module, ownerOf("argocd", apply, "")}, true, 1},
		"the module, copied by a status":  {[]metav1.ManagedFieldsEntry{module, ownerOf("mallory", apply, "status")}, true, 1},
		"a person":                        {[]metav1.ManagedFieldsEntry{ownerOf("oc", update, "")}, true, -1},
		"a person and a status":           {[]metav1.ManagedFieldsEntry{ownerOf("m", update, "status"), ownerOf("oc", update, "")}, true, -1},
		"an update as the module":         {[]metav1.ManagedFieldsEntry{ownerOf(own, update, "")}, true, -1},
		"a status":                        {[]metav1.ManagedFieldsEntry{ownerOf("mallory", update, "status")}, false, 0},
		"a status, applied as the module": {[]metav1.ManagedFieldsEntry{ownerOf(own, apply, "status")}, false, 0},
		"two subresources":                {[]metav1.ManagedFieldsEntry{ownerOf("m", update, "status"), ownerOf("m", update, "scale")}, false, 0},
		"nobody":                          {nil, true, 0},
	} {
		if got := patch.OptsOut(annotated(optOut, "all", slices.Clone(test.owners)...), "ingress"); got != test.optOut {
			t.Errorf("%s: opts out %t, want %t", name, got, test.optOut)
		}
		got, err := patch.ReadReplaced(annotated(patch.ReplacedAnnotation("ingress"), replaced, slices.Clone(test.owners)...), "ingress")
		if len(got) != max(test.read, 0) || errors.Is(err, patch.ErrReplacedAnnotation) != (test.read < 0) || test.read >= 0 && err != nil {
			t.Errorf("%s: replaced values %v, %v; want %d", name, got, err, test.read)
		}
	}
	stolen := ownerOf("mallory", update, "status")
	stolen.APIVersion = "operator.openshift.io/v1"
	got, err := patch.ReadReplaced(annotated(patch.ReplacedAnnotation("ingress"), replaced, stolen), "ingress")
	if len(got) != 1 || err != nil || !patch.OptsOut(annotated(optOut, "all", stolen), "ingress") {
		t.Errorf("a custom resource, whose status takes the owner of an annotation but not its value: %v, %v", got, err)
	}
	unreadable := annotated(optOut, "all", ownerOf("mallory", update, "status"))
	unreadable.ManagedFields[0].FieldsV1 = &metav1.FieldsV1{Raw: []byte("{")}
	if !patch.OptsOut(unreadable, "ingress") {
		t.Error("an opt-out whose owner cannot be decoded does not count")
	}
}

func TestNamesNeverChange(t *testing.T) {
	if got := patch.FieldOwner("ingress"); got != "sno.solonode.github.io/ingress" {
		t.Errorf("field owner %q: renaming it orphans every field on every cluster", got)
	}
	if got := patch.ReplacedAnnotation("ingress"); got != "sno.solonode.github.io/ingress-replaced" {
		t.Errorf("annotation %q: renaming it loses what was replaced on every cluster", got)
	}
}

func TestReplacedRoundTrip(t *testing.T) {
	replaced := []patch.Replaced{
		{Field: ".spec.replicas", Manager: "cluster-ingress-operator", Value: json.RawMessage("2")},
		{Field: ".spec.nodePlacement.nodeSelector", Manager: `a "quoted" manager`, Value: json.RawMessage(`{"matchLabels":{"infra":""}}`)},
		{Field: ".spec.nothing", Manager: "oc", Value: json.RawMessage("null")},
	}
	text, err := patch.WriteReplaced(replaced)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := patch.WriteReplaced(replaced); err != nil || again != text {
		t.Errorf("written again: %q, %v, want the same bytes as %q", again, err, text)
	}
	object := annotated(patch.ReplacedAnnotation("ingress"), text, ownerOf(patch.FieldOwner("ingress"), metav1.ManagedFieldsOperationApply, ""))
	object.Annotations[patch.ReplacedAnnotation("console")] = "damaged"
	got, err := patch.ReadReplaced(object, "ingress")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(replaced, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if got, err := patch.ReadReplaced(annotated("a", "b"), "ingress"); err != nil || got != nil {
		t.Errorf("without the annotation: %v, %v", got, err)
	}
	if _, err := patch.WriteReplaced([]patch.Replaced{{Field: ".a", Manager: "m", Value: json.RawMessage("{")}}); err == nil {
		t.Error("a value that is no JSON was written")
	}
}

func TestReplacedDamaged(t *testing.T) {
	for _, text := range []string{
		"", "{", "2", `{"field":".spec.replicas"}`,
		`[{"manager":"oc","value":2}]`,
		`[{"field":"spec.replicas","manager":"oc","value":2}]`,
		`[{"field":".spec.replicas","manager":"oc"}]`,
		`[{"field":".spec.replicas","value":2}]`,
		`[{"field":".spec.replicas","manager":"oc","value":2}`,
	} {
		module := ownerOf(patch.FieldOwner("ingress"), metav1.ManagedFieldsOperationApply, "")
		got, err := patch.ReadReplaced(annotated(patch.ReplacedAnnotation("ingress"), text, module), "ingress")
		if !errors.Is(err, patch.ErrReplacedAnnotation) || got != nil {
			t.Errorf("%q: %v, %v, want ErrReplacedAnnotation", text, got, err)
		}
	}
}

func TestChainOrder(t *testing.T) {
	var evaluated []string
	check := func(name string, result *patch.Result) patch.Check[string] {
		return patch.Check[string]{Name: name, Evaluate: func(input string) *patch.Result {
			evaluated = append(evaluated, name+" of "+input)
			return result
		}}
	}
	blocked, failed := &patch.Result{State: patch.Blocked}, &patch.Result{State: patch.Failed}
	chain := patch.Chain[string]{check("first", nil), check("second", blocked), check("third", failed)}
	if got, fields := chain.Run("x"); got != blocked || fields != patch.KeepFields {
		t.Errorf("got %v, %v, want the second check's result", got, fields)
	}
	if diff := cmp.Diff([]string{"first of x", "second of x"}, evaluated); diff != "" {
		t.Errorf("evaluated (-want +got):\n%s", diff)
	}
	if got, fields := (patch.Chain[string]{check("first", nil)}).Run("x"); got != nil || fields != patch.KeepFields {
		t.Errorf("got %v, %v from checks without a result", got, fields)
	}
}

func TestChainReleases(t *testing.T) {
	for _, state := range patch.States() {
		chain := patch.Chain[string]{{Name: "only", OwnedFields: patch.ReleaseFields, Evaluate: func(string) *patch.Result { return &patch.Result{State: state} }}}
		want := patch.ReleaseFields
		if state == patch.Waiting || state == patch.Failed {
			want = patch.KeepFields
		}
		if _, fields := chain.Run("x"); fields != want {
			t.Errorf("%v: release %v, want %v", state, fields, want)
		}
	}
}

func TestTopologyKnown(t *testing.T) {
	if got := patch.TopologyKnown(&topology.Cluster{}); got != nil {
		t.Errorf("a cluster that was read: %v", got)
	}
	got := patch.TopologyKnown(nil)
	if got == nil || got.State != patch.Waiting || got.Reason != patch.ReasonWaitingForInfrastructure || got.Message == "" {
		t.Errorf("no cluster: %v", got)
	}
}

func TestCombine(t *testing.T) {
	is := func(state patch.State, reason string) *patch.Result {
		return &patch.Result{State: state, Reason: reason}
	}
	later := func(state patch.State, reason string, after time.Duration) *patch.Result {
		return &patch.Result{State: state, Reason: reason, After: after}
	}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		results []*patch.Result
		reason  string
		after   time.Duration
		err     error
	}{
		"nothing":            {nil, "", 0, nil},
		"nothing to report":  {[]*patch.Result{nil, is(patch.Blocked, "b"), nil}, "b", 0, nil},
		"all in force":       {[]*patch.Result{is(patch.InForce, "a"), is(patch.InForce, "b"), is(patch.InForce, "c")}, "a", 0, nil},
		"one not needed":     {[]*patch.Result{is(patch.NotNeeded, "a"), is(patch.InForce, "b"), is(patch.InForce, "c")}, "b", 0, nil},
		"one in force":       {[]*patch.Result{is(patch.NotNeeded, "a"), is(patch.NotNeeded, "b"), is(patch.InForce, "c")}, "c", 0, nil},
		"the first in force": {[]*patch.Result{is(patch.InForce, "a"), is(patch.NotNeeded, "b")}, "a", 0, nil},
		"none needed":        {[]*patch.Result{is(patch.NotNeeded, "a"), is(patch.NotNeeded, "b")}, "a", 0, nil},
		"opted out of one":   {[]*patch.Result{is(patch.NotNeeded, "a"), is(patch.OptedOut, "b"), is(patch.InForce, "c")}, "b", 0, nil},
		"the worst":          {[]*patch.Result{is(patch.Blocked, "a"), is(patch.Progressing, "b"), is(patch.Failed, "c")}, "c", 0, nil},
		"another has a time": {[]*patch.Result{is(patch.Blocked, "a"), later(patch.Progressing, "b", time.Second), is(patch.InForce, "c")}, "a",
			time.Second, nil},
		"the soonest of two": {[]*patch.Result{later(patch.Failed, "a", time.Minute), later(patch.Reverted, "b", time.Second)}, "a", time.Second,
			nil},
		"the soonest of two, last": {[]*patch.Result{later(patch.Progressing, "a", time.Second), later(patch.Failed, "b", time.Minute)}, "b", time.Second,
			nil},
		"one failed":         {[]*patch.Result{{State: patch.Failed, Reason: "a", Err: broken}, is(patch.Failed, "b")}, "a", 0, broken},
		"a later one failed": {[]*patch.Result{is(patch.Failed, "a"), {State: patch.Failed, Reason: "b", Err: broken}}, "a", 0, broken},
	} {
		got := patch.Combine(test.results...)
		if got.Reason != test.reason || got.After != test.after || !errors.Is(got.Err, test.err) || (got.Err == nil) != (test.err == nil) {
			t.Errorf("%s: %+v; want %s, %s, %v", name, got, test.reason, test.after, test.err)
		}
	}
}
