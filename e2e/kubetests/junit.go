// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Outcome is the result of a test.
type Outcome string

// The outcomes. Skipped means that the test skipped itself.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Result is the result of one test.
type Result struct {
	Outcome Outcome
	Time    time.Duration
	// Text is the reason of a failure or of a skip.
	Text string
	// Image is the missing image that a failed test needs, if one is known.
	Image string
	// Again means that the test failed first, and passed alone.
	Again bool
}

// Results are the results of tests, by their codenames.
type Results map[string]Result

// ErrReport is returned for an incomplete report of tests.
var ErrReport = errors.New("incomplete report of tests")

type report struct {
	Suites []struct {
		Cases []testCase `xml:"testcase"`
	} `xml:"testsuite"`
}

type testCase struct {
	Name    string  `xml:"name,attr"`
	Status  string  `xml:"status,attr"`
	Time    float64 `xml:"time,attr"`
	Skipped *struct {
		Message string `xml:"message,attr"`
	} `xml:"skipped"`
	Failure *text  `xml:"failure"`
	Error   *text  `xml:"error"`
	Out     string `xml:"system-out"`
	Err     string `xml:"system-err"`
}

type text struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// ReadReport returns the results of tests from the JUnit report of e2e.test. A test without a result, and a failed
// setup or end of the suite, is an error.
func ReadReport(in io.Reader, tests []Test) (Results, error) {
	var all report
	if err := xml.NewDecoder(in).Decode(&all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	wanted := map[string]bool{}
	for _, test := range tests {
		wanted[test.Codename] = true
	}
	results := Results{}
	var errs []error
	for _, suite := range all.Suites {
		for i := range suite.Cases {
			one := &suite.Cases[i]
			name := strings.TrimPrefix(one.Name, "[It] ")
			result := one.result()
			switch {
			case wanted[name]:
				results[name] = result
			case name == one.Name && result.Outcome == Failed:
				errs = append(errs, fmt.Errorf("%w: %s failed: %s", ErrReport, name, first(result.Text)))
			}
		}
	}
	for _, test := range tests {
		if _, ok := results[test.Codename]; !ok {
			errs = append(errs, fmt.Errorf("%w: %s has no result", ErrReport, test.Codename))
		}
	}
	return results, errors.Join(errs...)
}

func (c *testCase) result() Result {
	r := Result{Outcome: Passed, Time: time.Duration(c.Time * float64(time.Second))}
	switch bad := cmpNil(c.Failure, c.Error); {
	case bad != nil:
		r.Outcome, r.Text = Failed, strings.TrimSpace(bad.Message+"\n"+bad.Text)
		r.Image = missingImage(r.Text + c.Out + c.Err)
	case c.Skipped != nil:
		r.Outcome, r.Text = Skipped, c.Skipped.Message
	case c.Status != "" && c.Status != "passed":
		r.Outcome, r.Text = Failed, c.Status
	}
	return r
}

func cmpNil(a, b *text) *text {
	if a != nil {
		return a
	}
	return b
}

func first(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Names returns the codenames with an outcome, sorted.
func (r Results) Names(outcome Outcome) []string {
	var names []string
	for name, result := range r {
		if result.Outcome == outcome {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// merge adds the results of a second attempt.
func (r Results) merge(second Results) {
	for name, result := range second {
		result.Again = result.Outcome == Passed
		result.Time += r[name].Time
		r[name] = result
	}
}

// Difference is a test with another outcome with the modules on than with them off.
type Difference struct {
	Codename string
	On, Off  Result
}

// Compare returns the tests whose outcomes differ, sorted. A test in only one of the two has an empty outcome there.
func Compare(on, off Results) []Difference {
	names := map[string]bool{}
	for name := range on {
		names[name] = true
	}
	for name := range off {
		names[name] = true
	}
	var differences []Difference
	for name := range names {
		if on[name].Outcome != off[name].Outcome {
			differences = append(differences, Difference{name, on[name], off[name]})
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int { return strings.Compare(a.Codename, b.Codename) })
	return differences
}
