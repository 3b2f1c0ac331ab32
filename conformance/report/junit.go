package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []junitSuite `xml:"testsuite"`
	junitCounts
}

type junitCounts struct {
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
	Time     string `xml:"time,attr"`
}

type junitSuite struct {
	Name      string `xml:"name,attr"`
	Timestamp string `xml:"timestamp,attr"`
	junitCounts
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitReason `xml:"failure"`
	Skipped *junitReason `xml:"skipped"`
}

type junitReason struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",cdata"`
}

// WriteJUnit writes a suite for every report and a case for every check. Checks that are inconclusive are failures of the type "inconclusive";
// those that are not applicable or whose failure is waived are skipped, with the reason.
func WriteJUnit(w io.Writer, reports ...Report) error {
	all := junitSuites{Name: "single-node conformance"}
	seconds := 0.0
	for _, report := range reports {
		suite := report.junit()
		all.Suites = append(all.Suites, suite)
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Skipped += suite.Skipped
		seconds += report.Seconds
	}
	all.Time = junitTime(seconds)
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

func (r Report) junit() junitSuite {
	suite := junitSuite{
		Name: r.Scenario, Timestamp: r.Started.UTC().Format(time.RFC3339), junitCounts: junitCounts{Tests: len(r.Results), Time: junitTime(r.Seconds)},
		Properties: []junitProperty{
			{"description", r.Description}, {"variant", r.Variant}, {"provider", r.Provider}, {"tool", r.Tool},
			{"controlPlaneTopology", r.Topology.Observed.ControlPlane}, {"infrastructureTopology", r.Topology.Observed.Infrastructure},
		},
	}
	for _, result := range r.Results {
		test := result.junit()
		suite.Cases = append(suite.Cases, test)
		if test.Failure != nil {
			suite.Failures++
		}
		if test.Skipped != nil {
			suite.Skipped++
		}
	}
	return suite
}

func (r Result) junit() junitCase {
	test := junitCase{Name: r.ID + " " + r.Title, Class: r.Module, Time: junitTime(r.Seconds)}
	switch r.mark() {
	case markPassed:
	case markFailed, markInconclusive:
		test.Failure = &junitReason{Type: r.mark().Words(), Message: r.complaint(), Text: r.account()}
	case markWaived:
		test.Skipped = &junitReason{Message: fmt.Sprintf("waived until %s: %s", r.Waiver.Expires, r.Waiver.Why), Text: r.account()}
	case markNotApplicable, markSkipped:
		test.Skipped = &junitReason{Message: r.mark().Words() + ": " + r.Reason}
	}
	return test
}

func junitTime(seconds float64) string { return fmt.Sprintf("%.3f", seconds) }

// account is everything that a check has to say for a failure, as plain text that may stand in XML.
func (r Result) account() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n", r.Requirement)
	if r.Reason != "" {
		fmt.Fprintln(&text, r.Reason)
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for i, e := range r.Evidence {
		if i == 0 {
			fmt.Fprintln(table, "\tobject\tfield\twant\tgot")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", symbol(e.Held), e.Object, e.Field, e.Want, e.Got)
	}
	for _, c := range r.Controls {
		fmt.Fprintf(table, "%s\tcontrol %s\t\t%s\t%s\n", symbol(c.Detected), c.Name, c.Want, c.Got)
	}
	_ = table.Flush() // a string takes everything
	return strings.Map(allowed, text.String())
}

// allowed replaces what no XML document may hold, not even escaped.
func allowed(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r == '\uFFFE' || r == '\uFFFF' {
		return '\uFFFD'
	}
	return r
}

func symbol(good bool) string {
	if good {
		return markPassed.Symbol()
	}
	return markFailed.Symbol()
}
