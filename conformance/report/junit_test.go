// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/reporters"
)

func TestJUnitCounts(t *testing.T) {
	var b strings.Builder
	if err := WriteJUnit(&b, sampleReports()...); err != nil {
		t.Fatal(err)
	}
	var read reporters.JUnitTestSuites
	if err := xml.Unmarshal([]byte(b.String()), &read); err != nil {
		t.Fatal(err)
	}
	all := len(sampleScenarios) * len(sampleModules)
	want := reporters.JUnitTestSuites{
		XMLName: read.XMLName, TestSuites: read.TestSuites, Time: 12.5 * float64(len(sampleScenarios)),
		Tests: 6 * all, Failures: 2 * all, Disabled: 3 * all, // waived, skipped or not applicable
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A suite names the operators that stand in and those that were given. A cluster that was not set up for the run has neither.
func TestJUnitOperators(t *testing.T) {
	set := Report{Operators: []Operator{
		{Module: "auth", Command: "authentication-operator", StandIn: true}, {Module: "ingress", Command: "./a <b>"}, {Module: "console", Command: "c", StandIn: true},
	}}
	for name, test := range map[string]struct {
		report Report
		want   map[string]string
	}{
		"given":    {set, map[string]string{"standIns": "auth, console", "givenOperator.ingress": "./a <b>"}},
		"existing": {Report{}, map[string]string{}},
	} {
		got := map[string]string{}
		for _, p := range test.report.junit().Properties.Properties {
			if strings.Contains(p.Name, "perator") || p.Name == "standIns" {
				got[p.Name] = p.Value
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOperators(t *testing.T) {
	standIns := []Operator{{Module: "ingress", Command: "ingress-operator --stock", StandIn: true}, {Module: "auth", Command: "authentication-operator", StandIn: true}}
	given := func(exits int) Operator { return Operator{Module: "auth", Command: "./a|b <c>", Exits: exits} }
	for _, test := range []struct {
		name        string
		reports     []Report
		lines, html []string
		not         string
	}{
		{"existing cluster", []Report{{Scenario: "a"}}, nil, nil, "perator"},
		{"stand-ins", []Report{{Scenario: "a", Operators: standIns[:1]}, {Scenario: "b", Operators: standIns}},
			[]string{"Stand-ins for operators of OpenShift: ingress, auth"}, []string{">Stand-ins for operators of OpenShift: ingress, auth</p>"}, "iven"},
		{"given", []Report{{Scenario: "a", Operators: []Operator{standIns[0], given(0)}}, {Scenario: "b", Operators: []Operator{standIns[0], given(0)}}},
			[]string{"Stand-ins for operators of OpenShift: ingress", "Given operator of auth: ./a|b <c>"},
			[]string{"OpenShift: ingress</p>", "Given operator of auth: <code>./a|b &lt;c&gt;</code></p>"}, "restarted"},
		{"given only", []Report{{Scenario: "a", Operators: []Operator{given(1)}}, {Scenario: "b", Operators: []Operator{given(2)}}},
			[]string{"Given operator of auth: ./a|b <c> (ended by itself and was restarted, times: 3)"},
			[]string{"</code>, ended by itself and was restarted, times: 3</p>"}, "Stand-ins"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.lines, OperatorLines(test.reports...)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			page := string(render(t, HTML{Title: "one", Reports: test.reports}))
			body := page[strings.Index(page, "<body>"):]
			for _, part := range test.html {
				if !strings.Contains(body, part) {
					t.Errorf("%q is missing in:\n%s", part, body)
				}
			}
			if strings.Contains(body, test.not) {
				t.Errorf("%q is in:\n%s", test.not, body)
			}
		})
	}
}
