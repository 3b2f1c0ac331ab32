package matrix

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/conformance/report"
)

var (
	// ErrExpectations says that a file of expectations cannot be used.
	ErrExpectations = errors.New("not a file of expectations")
	// ErrUnexpected says that something is red that must not be, or is not that must be. All of it follows.
	ErrUnexpected = errors.New("not what is known of clusters of today")
)

// Expectation says that a check must fail.
type Expectation struct {
	// ID is the check, Scenarios the clusters on which it must fail.
	ID        string   `json:"id"`
	Scenarios []string `json:"scenarios"`
	// Fact says why, with the section of the facts.
	Fact string `json:"fact"`
	// Sometimes says that it may also hold, where the fact is about when something happens.
	Sometimes bool `json:"sometimes,omitempty"`
}

// Expectations are all checks that must fail. Every other one must not.
type Expectations []Expectation

// ReadExpectations reads a file. The checks and the scenarios that it names must be known, and every expectation needs a fact.
func ReadExpectations(path string, ids, scenarios []string) (Expectations, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpectations, err)
	}
	var expected Expectations
	if err := yaml.UnmarshalStrict(text, &expected); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrExpectations, path, err)
	}
	var errs []error
	seen := map[string]bool{}
	for i, e := range expected {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%w: %s: entry %d: "+format, append([]any{ErrExpectations, path, i + 1}, args...)...))
		}
		if !slices.Contains(ids, e.ID) {
			wrong("id: no check is called %q", e.ID)
		}
		if strings.TrimSpace(e.Fact) == "" {
			wrong("fact: %s needs one", e.ID)
		}
		if len(e.Scenarios) == 0 {
			wrong("scenarios: %s needs at least one", e.ID)
		}
		for _, scenario := range e.Scenarios {
			if !slices.Contains(scenarios, scenario) {
				wrong("scenarios: no cluster is called %q", scenario)
			}
			if pair := e.ID + " " + scenario; seen[pair] {
				wrong("scenarios: %s is there twice", pair)
			} else {
				seen[pair] = true
			}
		}
	}
	return expected, errors.Join(errs...)
}

// Compare is nil when exactly those checks failed that must, and nothing is inconclusive. Checks that were skipped say nothing.
func (e Expectations) Compare(reports []report.Report) error {
	var faults []string
	done := 0
	for _, r := range reports {
		for _, result := range r.Results {
			if result.Status == report.Skipped {
				continue
			}
			done++
			if fault := e.fault(r.Scenario, result); fault != "" {
				faults = append(faults, fmt.Sprintf("%s: %s %s", r.Scenario, result.ID, fault))
			}
		}
	}
	switch {
	case done == 0:
		return fmt.Errorf("%w: every check was skipped", ErrUnexpected)
	case len(faults) > 0:
		return fmt.Errorf("%w:\n%s", ErrUnexpected, strings.Join(faults, "\n"))
	}
	return nil
}

// fault says what is wrong with a result, or nothing.
func (e Expectations) fault(scenario string, result report.Result) string {
	at := slices.IndexFunc(e, func(one Expectation) bool { return one.ID == result.ID && slices.Contains(one.Scenarios, scenario) })
	failed := result.Status == report.Failed
	switch {
	case at >= 0 && !failed && !e[at].Sometimes:
		return fmt.Sprintf("is %s and must fail: %s", result.Status, strings.TrimSpace(e[at].Fact))
	case at < 0 && failed:
		return "failed, which nothing explains: " + complaint(result)
	case result.Status == report.Inconclusive:
		return "is inconclusive: " + result.Reason
	}
	return ""
}

// complaint is the first thing that a check found wrong.
func complaint(result report.Result) string {
	for _, e := range result.Evidence {
		if !e.Held {
			return fmt.Sprintf("%s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got)
		}
	}
	return result.Reason
}
