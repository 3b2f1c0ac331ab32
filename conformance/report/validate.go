// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Validate returns all contradictions in a report, each with its field.
func (r Report) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.APIVersion != APIVersion {
		fault("apiVersion: %q is not %s", r.APIVersion, APIVersion)
	}
	if r.Kind != Kind {
		fault("kind: %q is not %s", r.Kind, Kind)
	}
	if r.Scenario == "" {
		fault("scenario: it is empty")
	}
	hosted := map[string]bool{}
	for i, operator := range r.Operators {
		switch {
		case operator.Module == "":
			fault("operators[%d].module: it is empty", i)
		case hosted[operator.Module]:
			fault("operators[%d].module: %q is a duplicate", i, operator.Module)
		case operator.Command == "":
			fault("operators[%d].command: it is empty", i)
		case operator.Exits < 0:
			fault("operators[%d].exits: it is %d", i, operator.Exits)
		}
		hosted[operator.Module] = true
	}
	seen := map[string]bool{}
	for i, result := range r.Results {
		if seen[result.ID] {
			fault("results[%d].id: %q is a duplicate", i, result.ID)
		}
		seen[result.ID] = true
		if err := result.validate(); err != nil {
			fault("results[%d] (%s).%w", i, result.ID, err)
		}
	}
	return errors.Join(append(errs, r.validateCounts())...)
}

func (r Report) validateCounts() error {
	var errs []error
	counted := Report{Results: r.Results}
	counted.Count()
	for _, status := range Statuses() {
		if got, ok := r.Counts[status]; !ok {
			errs = append(errs, fmt.Errorf("counts.%s: it is missing; %d results are %s", status, counted.Counts[status], status))
		} else if got != counted.Counts[status] {
			errs = append(errs, fmt.Errorf("counts.%s: it is %d, but %d results are %s", status, got, counted.Counts[status], status))
		}
	}
	for status := range r.Counts {
		if !slices.Contains(Statuses(), status) {
			errs = append(errs, fmt.Errorf("counts.%s: unknown status", status))
		}
	}
	return errors.Join(errs...)
}

func (r Result) validate() error {
	switch {
	case r.ID == "":
		return errors.New("id: it is empty")
	case r.Module == "":
		return errors.New("module: it is empty")
	case r.Waiver != nil && r.Status != Failed:
		return fmt.Errorf("waiver: the check is %s; only failures can be waived", r.Status)
	}
	if r.Waiver != nil {
		if _, err := time.Parse(time.DateOnly, r.Waiver.Expires); err != nil {
			return fmt.Errorf("waiver.expires: %q is not a date like 2006-01-02", r.Waiver.Expires)
		}
	}
	return r.validateStatus()
}

func (r Result) validateStatus() error {
	undetected := slices.ContainsFunc(r.Controls, func(c Control) bool { return !c.Detected })
	unheld := slices.ContainsFunc(r.Evidence, func(e Evidence) bool { return !e.Held })
	switch r.Status {
	case Passed:
		if unheld || len(r.Evidence) == 0 {
			return errors.New("status: it is passed, but not every evidence held, or none exists")
		}
		if undetected || len(r.Controls) == 0 {
			return errors.New("status: it is passed, but not every control was detected, or none exists")
		}
	case Failed:
		if !unheld && r.Reason == "" {
			return errors.New("reason: the check failed without a failed evidence or a reason")
		}
	case Inconclusive, NotApplicable, Skipped:
		if r.Reason == "" {
			return fmt.Errorf("reason: it is empty, and the check is %s", r.Status)
		}
	default:
		return fmt.Errorf("status: %q is none of %v", r.Status, Statuses())
	}
	return nil
}
