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
