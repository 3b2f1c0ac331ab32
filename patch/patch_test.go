package patch_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/patch"
)

func TestStatesAreInOrderAndNamed(t *testing.T) {
	states := patch.States()
	if !slices.IsSorted(states) || len(slices.Compact(slices.Clone(states))) != len(states) {
		t.Errorf("not in order of severity: %v", states)
	}
	want := []string{"InForce", "NotNeeded", "OptedOut", "WouldChange", "Progressing", "Waiting", "Blocked", "Reverted", "Failed"}
	var got []string
	for _, state := range states {
		got = append(got, state.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := patch.State(99).String(); got != "State(99)" {
		t.Errorf("an unknown state is %q", got)
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
	if got := patch.Worst(); got.State != patch.InForce {
		t.Errorf("Worst() is %v", got)
	}
}

func TestOK(t *testing.T) {
	ok := map[patch.State]bool{
		patch.InForce: true, patch.NotNeeded: true, patch.OptedOut: true,
		patch.WouldChange: false, patch.Progressing: false, patch.Waiting: false, patch.Blocked: false, patch.Reverted: false, patch.Failed: false,
	}
	for _, state := range patch.States() {
		want, listed := ok[state]
		if got := (patch.Result{State: state}).OK(); got != want || !listed {
			t.Errorf("%s: OK is %t, want %t", state, got, want)
		}
	}
	if (patch.Result{State: 99}).OK() {
		t.Error("an unknown state is not OK")
	}
}

func TestConditions(t *testing.T) {
	const prefix = "SampleModule"
	fails := map[patch.State]bool{patch.Failed: true, patch.Reverted: true}
	inForce := map[patch.State]bool{patch.InForce: true, patch.Progressing: true}
	status := map[bool]operatorv1.ConditionStatus{true: operatorv1.ConditionTrue, false: operatorv1.ConditionFalse}
	for _, state := range patch.States() {
		for _, persistent := range []bool{false, true} {
			result := patch.Result{State: state, Reason: "TheReason", Message: "The message"}
			condition := func(kind string, is bool, otherwise string) operatorv1.OperatorCondition {
				if is {
					return operatorv1.OperatorCondition{Type: prefix + kind, Status: operatorv1.ConditionTrue, Reason: "TheReason", Message: "The message"}
				}
				return operatorv1.OperatorCondition{Type: prefix + kind, Status: operatorv1.ConditionFalse, Reason: "AsExpected", Message: otherwise}
			}
			want := []operatorv1.OperatorCondition{
				condition("PatchFailing", persistent && fails[state], "Nothing is failing"),
				condition("PatchInProgress", state == patch.Progressing, "Nothing is in progress"),
				{Type: prefix + "PatchInForce", Status: status[inForce[state]], Reason: "TheReason", Message: "The message"},
			}
			if diff := cmp.Diff(want, result.Conditions(prefix, persistent)); diff != "" {
				t.Errorf("%s, persistent %t (-want +got):\n%s", state, persistent, diff)
			}
			if diff := cmp.Diff(result.Conditions(prefix, persistent), result.Conditions(prefix, persistent)); diff != "" {
				t.Errorf("%s: not stable:\n%s", state, diff)
			}
		}
	}
	if got := (patch.Result{}).Conditions(prefix, true)[2]; got.Reason != patch.ReasonAsExpected {
		t.Errorf("a condition without a reason: %+v", got)
	}
	if got := patch.InForceCondition(prefix); got != "SampleModulePatchInForce" {
		t.Errorf("InForceCondition is %q", got)
	}
	if got := patch.FailingCondition(prefix); got != "SampleModulePatchFailing" {
		t.Errorf("FailingCondition is %q", got)
	}
}

// library-go's status controller takes conditions that end like this up into the stock ClusterOperator. What it does with ours is tested in
// examples/hosts/console-operator, which has that controller.
func TestConditionsAreNotTakenUp(t *testing.T) {
	for _, c := range (patch.Result{}).Conditions("Sample", false) {
		for _, suffix := range []string{"Degraded", "Progressing", "Available", "Upgradeable", "EvaluationConditionsDetected"} {
			if strings.HasSuffix(c.Type, suffix) {
				t.Errorf("%s ends in %s", c.Type, suffix)
			}
		}
	}
}

func TestTransition(t *testing.T) {
	events := map[patch.State]patch.Event{
		patch.InForce:     {Type: "Normal", Action: "Patch"},
		patch.NotNeeded:   {Type: "Normal", Action: "Release"},
		patch.OptedOut:    {Type: "Normal", Action: "Release"},
		patch.WouldChange: {Type: "Normal", Action: "Patch"},
		patch.Progressing: {Type: "Normal", Action: "Patch"},
		patch.Waiting:     {Type: "Normal", Action: "Wait"},
		patch.Blocked:     {Type: "Warning", Action: "Patch"},
		patch.Reverted:    {Type: "Warning", Action: "Patch"},
		patch.Failed:      {Type: "Warning", Action: "Patch"},
	}
	for _, state := range patch.States() {
		result := patch.Result{State: state, Reason: "Now", Message: "It is so"}
		want := events[state]
		want.Reason, want.Note = "Now", "It is so"
		if got, sent := result.Transition("Before"); !sent || got != want {
			t.Errorf("%s after another reason: %+v, %t, want %+v", state, got, sent, want)
		}
		if got, sent := result.Transition("Now"); sent {
			t.Errorf("%s is confirmed, not entered, yet %+v is sent", state, got)
		}
		quiet := state == patch.NotNeeded || state == patch.OptedOut
		if _, sent := result.Transition(""); sent == quiet {
			t.Errorf("%s at the first look: an event is sent: %t, want %t", state, sent, !quiet)
		}
	}
}

func TestRequeue(t *testing.T) {
	failure := errors.New("refused")
	tests := map[string]struct {
		result patch.Result
		after  time.Duration
		err    error
	}{
		"a watch will tell":    {patch.Result{State: patch.Waiting}, 0, nil},
		"another look":         {patch.Result{State: patch.Reverted, After: time.Minute}, time.Minute, nil},
		"retry with back-off":  {patch.Result{State: patch.Failed, Err: failure}, 0, failure},
		"an error has no time": {patch.Result{State: patch.Failed, After: time.Minute, Err: failure}, 0, failure},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if after, err := test.result.Requeue(); after != test.after || !errors.Is(err, test.err) {
				t.Errorf("got %s, %v, want %s, %v", after, err, test.after, test.err)
			}
		})
	}
}

func TestOptsOut(t *testing.T) {
	tests := map[string]bool{
		"": false, "ingress": true, "all": true, "true": true, "console": false, "console,ingress": true, " console , ingress ": true,
		"ingressx": false, "Ingress": false, "console,,": false, "false": false,
	}
	for value, want := range tests {
		if got := patch.OptsOut(map[string]string{"sno.solonode.github.io/opt-out": value}, "ingress"); got != want {
			t.Errorf("%q keeps ingress away: %t, want %t", value, got, want)
		}
	}
	if patch.OptsOut(nil, "ingress") || patch.OptsOut(map[string]string{"opt-out": "all"}, "ingress") {
		t.Error("without the annotation nobody is kept away")
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
	got, err := patch.ReadReplaced(map[string]string{patch.ReplacedAnnotation("ingress"): text, patch.ReplacedAnnotation("console"): "damaged"}, "ingress")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(replaced, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if got, err := patch.ReadReplaced(map[string]string{"a": "b"}, "ingress"); err != nil || got != nil {
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
		got, err := patch.ReadReplaced(map[string]string{patch.ReplacedAnnotation("ingress"): text}, "ingress")
		if !errors.Is(err, patch.ErrReplacedAnnotation) || got != nil {
			t.Errorf("%q: %v, %v, want ErrReplacedAnnotation", text, got, err)
		}
	}
}

func TestChainOrder(t *testing.T) {
	var asked []string
	check := func(name string, result *patch.Result) patch.Check[string] {
		return patch.Check[string]{Name: name, Evaluate: func(input string) *patch.Result {
			asked = append(asked, name+" about "+input)
			return result
		}}
	}
	blocked, failed := &patch.Result{State: patch.Blocked}, &patch.Result{State: patch.Failed}
	chain := patch.Chain[string]{check("first", nil), check("second", blocked), check("third", failed)}
	if got := chain.Run("x"); got != blocked {
		t.Errorf("got %v, want the second check's result", got)
	}
	if diff := cmp.Diff([]string{"first about x", "second about x"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if got := (patch.Chain[string]{check("first", nil)}).Run("x"); got != nil {
		t.Errorf("got %v from content checks", got)
	}
}

func TestResultString(t *testing.T) {
	tests := map[string]patch.Result{
		"InForce":                              {},
		"Blocked (FieldOwnedByOther): Manager": {State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther, Message: "Manager"},
	}
	for want, result := range tests {
		if got := result.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
