// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
