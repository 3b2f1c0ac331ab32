// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestTable(t *testing.T) {
	mixed := sample("a", report.Failed, "")
	mixed.Results = append(mixed.Results, sample("a", report.Passed, "").Results[0], sample("a", report.Skipped, "").Results[0])
	waived := sample("with-a-longer-name", report.Failed, "")
	waived.Results[0].Waiver = &report.Waiver{}
	vague := sample("c", report.Inconclusive, "a control was not detected")
	vague.Results[0].Module = "auth"
	lost := sample("d", report.Failed, "it crashed")
	lost.Results[0].Evidence = nil
	lost.Results = append(lost.Results, lost.Results[0], sample("d", report.Skipped, "it was not selected").Results[0])
	interrupted := sample("e", report.Inconclusive, "it was interrupted")
	interrupted.Results[0].Evidence = nil
	interrupted.Results = append(interrupted.Results, interrupted.Results[0])
	mixed.Operators = []report.Operator{{Module: "ingress", Command: "./ingress-operator start", Exits: 1}, {Module: "auth", Command: "authentication-operator", StandIn: true}}
	var b strings.Builder
	if err := WriteTable(&b, []report.Report{mixed, waived, vague, lost, interrupted}); err != nil {
		t.Fatal(err)
	}
	const want = `SCENARIO            INGRESS   AUTH
a                   ✘ 1 of 2  –
with-a-longer-name  ✔ 1       –
c                   –         ? 0 of 1
d                   ✘ 0 of 2  –
e                   ? 0 of 2  –

Stand-ins for operators of OpenShift: auth
Given operator of ingress: ./ingress-operator start (ended by itself and was restarted, times: 1)

a  SNO-ING-001 failed: One
    Node a b: want c, got c

c  SNO-ING-001 inconclusive: One
    a control was not detected

d  every check: failed: it crashed

e  every check: inconclusive: it was interrupted
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
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
