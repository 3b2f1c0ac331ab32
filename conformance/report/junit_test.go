package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Texts of a cluster can hold anything; a file that a machine cannot read is worth nothing.
func TestJUnitHostile(t *testing.T) {
	report := smallReport()
	hostile := "]]><x a=\"&\x00\x1b[31m\xff"
	report.Scenario = hostile
	for i := range report.Results {
		r := &report.Results[i]
		r.Title, r.Reason = hostile, hostile
		for j := range r.Evidence {
			r.Evidence[j].Got = hostile
		}
	}
	var b strings.Builder
	if err := WriteJUnit(&b, report); err != nil {
		t.Fatal(err)
	}
	var read junitSuites
	if err := xml.Unmarshal([]byte(b.String()), &read); err != nil {
		t.Fatal(err)
	}
	if got := len(read.Suites[0].Cases); got != len(report.Results) {
		t.Errorf("%d cases, want %d", got, len(report.Results))
	}
}

func TestJUnitCounts(t *testing.T) {
	var b strings.Builder
	if err := WriteJUnit(&b, sampleReports("baseline")...); err != nil {
		t.Fatal(err)
	}
	var read junitSuites
	if err := xml.Unmarshal([]byte(b.String()), &read); err != nil {
		t.Fatal(err)
	}
	var total tally
	for _, report := range sampleReports("baseline") {
		total.add(count(report.Results))
	}
	want := junitCounts{
		Tests: len(sampleScenarios) * 45, Failures: total[markFailed] + total[markInconclusive],
		Skipped: total[markWaived] + total[markNotApplicable] + total[markSkipped], Time: "162.500",
	}
	if diff := cmp.Diff(want, read.junitCounts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
