// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	bad := []Evidence{{Object: "Deployment a/b", Field: "spec.replicas", Want: "1", Got: "2"}}
	for _, test := range []struct {
		name    string
		results []Result
		want    error
		message string
	}{
		{"good", []Result{{Status: Passed}, {Status: NotApplicable}, {Status: Skipped}, {Status: Failed, Waiver: &Waiver{}}}, nil, ""},
		{"failed", []Result{{Status: Passed}, {ID: "A", Status: Failed, Evidence: bad}}, ErrFailed, "ha: A failed: Deployment a/b spec.replicas: want 1, got 2"},
		{"inconclusive", []Result{{Status: Passed}, {ID: "B", Status: Inconclusive, Reason: "missed"}}, ErrFailed, "ha: B inconclusive: missed"},
		{"unknown status", []Result{{Status: Passed}, {ID: "C", Status: "great"}}, ErrFailed, "ha: C great"},
		{"only skipped", []Result{{Status: Skipped}, {Status: NotApplicable}}, ErrNothingChecked, "nothing was checked"},
		{"no results", nil, ErrNothingChecked, "the report of ha has no results"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Verdict([]Report{{Scenario: "ha", Results: test.results}})
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.message) {
				t.Errorf("got %v, want %v with %q", err, test.want, test.message)
			}
		})
	}
	if err := Verdict(nil); !errors.Is(err, ErrNothingChecked) {
		t.Errorf("no reports: got %v", err)
	}
	if err := Verdict([]Report{{Results: []Result{{Status: Passed}}}, {Scenario: "empty"}}); !errors.Is(err, ErrNothingChecked) {
		t.Errorf("one report without results: got %v", err)
	}
}

func TestText(t *testing.T) {
	result := Result{
		ID: "SNO-ING-004", Status: Inconclusive, Reason: "controls with a wrong result",
		Evidence: []Evidence{{Object: "Deployment a/held", Field: "f", Want: "1", Got: "1", Held: true}, {Object: "Deployment a/wrong", Field: "f", Want: "1", Got: "2"}},
		Controls: []Control{{Name: "seen", Want: "fail", Detected: true}, {Name: "missed", Want: "fail", Got: "it passed"}},
	}
	got := result.Text()
	for _, part := range []string{"SNO-ING-004: inconclusive: controls", `control "missed": the check must fail, got: it passed`} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in:\n%s", part, got)
		}
	}
	if strings.Contains(got, "seen") || strings.Index(got, "a/wrong") > strings.Index(got, "a/held") {
		t.Errorf("failures must be first, and detected controls must be missing:\n%s", got)
	}
}

func TestFailureMessage(t *testing.T) {
	wrong := []Evidence{{Object: "o", Field: "f", Want: "1", Got: "2"}}
	for name, test := range map[string]struct {
		result Result
		want   string
	}{
		"passed":   {Result{Status: Passed, Evidence: wrong}, ""},
		"skipped":  {Result{Status: Skipped, Reason: "why"}, ""},
		"evidence": {Result{Status: Failed, Evidence: wrong, Reason: "why"}, "o f: want 1, got 2"},
		"reason":   {Result{Status: Inconclusive, Reason: "why"}, "why"},
		"nothing":  {Result{Status: Failed}, "failed"},
	} {
		if got := test.result.FailureMessage(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
