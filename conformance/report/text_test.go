// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

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
