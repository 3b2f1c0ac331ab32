// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
)

var check = catalogue.Check{
	ID: "SNO-ING-004", Title: "The router is pinned", Module: "ingress", Level: catalogue.Core, Tier: catalogue.Static,
	Requirement: catalogue.Requirement{ID: "R-EXAMPLE-5", Sentence: "it stays"}, Topologies: []string{"SingleReplica"},
}

func TestName(t *testing.T) {
	if got, want := Name(check), "[sno-conformance] [SNO-ING-004] The router is pinned"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
}

func TestLabels(t *testing.T) {
	want := []string{"tier:static", "module:ingress", "level:core", "requirement:R-EXAMPLE-5", "topology:SingleReplica"}
	if diff := cmp.Diff(want, Labels(check)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	disruptive := check
	disruptive.Tier, disruptive.Topologies = catalogue.Disruptive, nil
	for _, label := range []string{"Serial", "Disruptive", "topology:External", "topology:HighlyAvailableArbiter"} {
		if !slices.Contains(Labels(disruptive), label) {
			t.Errorf("a disruptive check for all topologies has no label %s: %v", label, Labels(disruptive))
		}
	}
}

func TestResult(t *testing.T) {
	result := report.Result{
		ID: "SNO-ING-004", Status: report.Inconclusive, Reason: "controls with a wrong result",
		Evidence: []report.Evidence{{Object: "Deployment a/held", Field: "f", Want: "1", Got: "1", Held: true}, {Object: "Deployment a/wrong", Field: "f", Want: "1", Got: "2"}},
		Controls: []report.Control{{Name: "seen", Want: "fail", Detected: true}, {Name: "missed", Want: "fail", Got: "it passed"}},
	}
	got := Result(result)
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
	wrong := []report.Evidence{{Object: "o", Field: "f", Want: "1", Got: "2"}}
	for name, test := range map[string]struct {
		result report.Result
		want   string
	}{
		"passed":   {report.Result{Status: report.Passed, Evidence: wrong}, ""},
		"skipped":  {report.Result{Status: report.Skipped, Reason: "why"}, ""},
		"evidence": {report.Result{Status: report.Failed, Evidence: wrong, Reason: "why"}, "o f: want 1, got 2"},
		"reason":   {report.Result{Status: report.Inconclusive, Reason: "why"}, "why"},
		"nothing":  {report.Result{Status: report.Failed}, "failed"},
	} {
		if got := FailureMessage(test.result); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
