// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/reporters"
)

// WriteJUnit writes a suite for each report and a case for each check. Inconclusive checks are failures of type
// "inconclusive"; checks that are not applicable, skipped or waived are skipped, with the reason.
func WriteJUnit(w io.Writer, reports ...Report) error {
	var all reporters.JUnitTestSuites
	for _, report := range reports {
		suite := report.junit()
		all.TestSuites = append(all.TestSuites, suite)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Disabled += suite.Skipped
		all.Time += suite.Time
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r Report) junit() reporters.JUnitTestSuite {
	suite := reporters.JUnitTestSuite{
		Name: r.Scenario, Package: "single-node conformance", Timestamp: r.Started.UTC().Format(time.RFC3339), Tests: len(r.Results), Time: r.Seconds,
		Properties: reporters.JUnitProperties{Properties: []reporters.JUnitProperty{
			{Name: "description", Value: r.Description}, {Name: "variant", Value: r.Variant}, {Name: "provider", Value: r.Provider}, {Name: "tool", Value: r.Tool},
			{Name: "controlPlaneOrigin", Value: r.ControlPlaneOrigin},
			{Name: "controlPlaneTopology", Value: r.Topology.Observed.ControlPlane},
			{Name: "infrastructureTopology", Value: r.Topology.Observed.Infrastructure},
		}},
	}
	properties := &suite.Properties.Properties
	if o := operatorsOf([]Report{r}); len(r.Operators) > 0 {
		*properties = append(*properties, reporters.JUnitProperty{Name: "standIns", Value: strings.Join(o.StandIns, ", ")})
		for _, given := range o.Given {
			*properties = append(*properties, reporters.JUnitProperty{Name: "givenOperator." + given.Module, Value: given.Command})
		}
	}
	for _, result := range r.Results {
		test := result.junit()
		suite.TestCases = append(suite.TestCases, test)
		if test.Failure != nil {
			suite.Failures++
		}
		if test.Skipped != nil {
			suite.Skipped++
		}
	}
	return suite
}

func (r Result) junit() reporters.JUnitTestCase {
	test := reporters.JUnitTestCase{Name: r.ID + " " + r.Title, Classname: r.Module, Status: r.mark().Words(), Time: r.Seconds}
	switch r.mark() {
	case markPassed:
	case markFailed, markInconclusive:
		test.Failure = &reporters.JUnitFailure{Type: r.mark().Words(), Message: r.failureMessage(), Description: r.details()}
	case markWaived:
		test.Skipped = &reporters.JUnitSkipped{Message: fmt.Sprintf("waived until %s: %s", r.Waiver.Expires, r.Waiver.Why)}
		test.SystemOut = r.details()
	case markNotApplicable, markSkipped:
		test.Skipped = &reporters.JUnitSkipped{Message: r.mark().Words() + ": " + r.Reason}
	}
	return test
}

// details are the requirement and the text for people.
func (r Result) details() string { return "\n" + r.Requirement + "\n" + r.Text() }
