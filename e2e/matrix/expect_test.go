// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/conformance/report"
)

func TestReadExpectations(t *testing.T) {
	const right = "- id: SNO-ING-001\n  scenarios: [a, b]\n  fact: it floats\n"
	for _, test := range []struct{ name, text, want string }{
		{"right", right, ""},
		{"nothing", "", ""},
		{"unknown check", strings.Replace(right, "001", "009", 1), `entry 1: id: unknown check "SNO-ING-009"`},
		{"unknown cluster", strings.Replace(right, "b]", "c]", 1), `entry 1: scenarios: unknown scenario "c"`},
		{"no cluster", strings.Replace(right, "[a, b]", "[]", 1), "entry 1: scenarios: SNO-ING-001 needs at least one"},
		{"no fact", strings.Replace(right, "it floats", "' '", 1), "entry 1: fact: SNO-ING-001 needs one"},
		{"twice", right + right, "entry 2: scenarios: duplicate SNO-ING-001 a"},
		{"unknown field", right + "  because: of\n", "because"},
		{"no list", "id: a", "cannot unmarshal"},
	} {
		path := filepath.Join(t.TempDir(), "expect.yaml")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadExpectations(path, []string{"SNO-ING-001"}, []string{"a", "b"})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (!errors.Is(err, ErrExpectations) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	if _, err := ReadExpectations("nothing.yaml", nil, nil); !errors.Is(err, ErrExpectations) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestCompare(t *testing.T) {
	expected := Expectations{
		{ID: "SNO-ING-001", Scenarios: []string{"fails"}, Fact: "it floats"},
		{ID: "SNO-ING-001", Scenarios: []string{"sometimes"}, Fact: "it floats", Sometimes: true},
	}
	for _, test := range []struct {
		scenario string
		status   report.Status
		want     string
	}{
		{"fails", report.Failed, ""},
		{"passes", report.Passed, ""},
		{"passes", report.NotApplicable, ""},
		{"fails", report.Passed, "fails: SNO-ING-001 is passed and must fail: it floats"},
		{"fails", report.NotApplicable, "fails: SNO-ING-001 is notApplicable and must fail: it floats"},
		{"fails", report.Inconclusive, "fails: SNO-ING-001 is inconclusive and must fail: it floats"},
		{"passes", report.Failed, "passes: SNO-ING-001 failed, which is not expected: Node a b: want c, got c"},
		{"passes", report.Inconclusive, "passes: SNO-ING-001 is inconclusive: why"},
		{"sometimes", report.Failed, ""},
		{"sometimes", report.Passed, ""},
		{"sometimes", report.Inconclusive, "sometimes: SNO-ING-001 is inconclusive: why"},
		{"fails", report.Skipped, "every check was skipped"},
	} {
		err := expected.Compare([]report.Report{sample(test.scenario, test.status, "why")})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s %s: %v", test.scenario, test.status, err)
		case test.want != "" && (!errors.Is(err, ErrUnexpected) || !strings.HasSuffix(err.Error(), test.want)):
			t.Errorf("%s %s: %v, want %s", test.scenario, test.status, err, test.want)
		}
	}
	// A skipped one does not hide the others.
	if err := expected.Compare([]report.Report{sample("fails", report.Skipped, "why"), sample("passes", report.Passed, "")}); err != nil {
		t.Error(err)
	}
}

func sample(scenario string, status report.Status, reason string) report.Report {
	r := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Scenario: scenario, Provider: "fake", Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Results: []report.Result{{
			ID: "SNO-ING-001", Title: "One", Module: "ingress", Level: "core", Tier: "static", Requirement: "R-EXAMPLE-1: one", Status: status, Reason: reason,
			Evidence: []report.Evidence{{Object: "Node a", Field: "b", Want: "c", Got: "c", Held: status != report.Failed}},
			Controls: []report.Control{{Name: "x", Want: "fail", Detected: true}, {Name: "y", Want: "pass", Detected: true}},
		}},
	}
	r.Count()
	return r
}
