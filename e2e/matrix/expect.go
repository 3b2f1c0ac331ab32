// SPDX-License-Identifier: Apache-2.0

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
	// ErrExpectations means that a file of expectations is invalid.
	ErrExpectations = errors.New("not a file of expectations")
	// ErrUnexpected means that results differ from the expectations. All differences follow.
	ErrUnexpected = errors.New("not exactly the expected failures")
)

// Expectation is a check that must fail.
type Expectation struct {
	// ID is the check, Scenarios the clusters on which it must fail.
	ID        string   `json:"id"`
	Scenarios []string `json:"scenarios"`
	// Fact is the reason, with its number in docs/upstream.md.
	Fact string `json:"fact"`
	// Sometimes means that it may also pass, if the fact depends on timing.
	Sometimes bool `json:"sometimes,omitempty"`
}

// Expectations are all checks that must fail. No other one may.
type Expectations []Expectation

// ReadExpectations reads a file and checks its names of checks and scenarios. Every expectation needs a fact.
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
			wrong("id: unknown check %q", e.ID)
		}
		if strings.TrimSpace(e.Fact) == "" {
			wrong("fact: %s needs one", e.ID)
		}
		if len(e.Scenarios) == 0 {
			wrong("scenarios: %s needs at least one", e.ID)
		}
		for _, scenario := range e.Scenarios {
			if !slices.Contains(scenarios, scenario) {
				wrong("scenarios: unknown scenario %q", scenario)
			}
			if pair := e.ID + " " + scenario; seen[pair] {
				wrong("scenarios: duplicate %s", pair)
			} else {
				seen[pair] = true
			}
		}
	}
	return expected, errors.Join(errs...)
}

// Compare returns nil if exactly the expected checks failed, and none is inconclusive. Skipped checks do not count.
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

func (e Expectations) fault(scenario string, result report.Result) string {
	at := slices.IndexFunc(e, func(one Expectation) bool { return one.ID == result.ID && slices.Contains(one.Scenarios, scenario) })
	failed := result.Status == report.Failed
	switch {
	case at >= 0 && !failed && !e[at].Sometimes:
		return fmt.Sprintf("is %s and must fail: %s", result.Status, strings.TrimSpace(e[at].Fact))
	case at < 0 && failed:
		return "failed, which is not expected: " + firstFailure(result)
	case result.Status == report.Inconclusive:
		return "is inconclusive: " + result.Reason
	}
	return ""
}

func firstFailure(result report.Result) string {
	for _, e := range result.Evidence {
		if !e.Held {
			return fmt.Sprintf("%s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got)
		}
	}
	return result.Reason
}
