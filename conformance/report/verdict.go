// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrFailed is returned, with all of them, if checks failed or are inconclusive and not waived.
	ErrFailed = errors.New("not conformant")
	// ErrNothingChecked is returned if no check ran.
	ErrNothingChecked = errors.New("nothing was checked")
)

// Verdict returns nil if at least one check ran, and all passed or have a waiver from [Apply]. It does not check
// whether waivers have expired since.
func Verdict(reports []Report) error {
	var faults []string
	done := 0
	for _, report := range reports {
		if len(report.Results) == 0 {
			return fmt.Errorf("%w: the report of %s has no results", ErrNothingChecked, report.Scenario)
		}
		for _, result := range report.Results {
			switch result.mark() {
			case markPassed, markWaived:
				done++
			case markNotApplicable, markSkipped:
			case markFailed, markInconclusive:
				done++
				faults = append(faults, fmt.Sprintf("%s: %s %s: %s", report.Scenario, result.ID, result.Status, result.failureMessage()))
			}
		}
	}
	switch {
	case len(faults) > 0:
		return fmt.Errorf("%w:\n%s", ErrFailed, strings.Join(faults, "\n"))
	case done == 0:
		return fmt.Errorf("%w: every check was skipped or is not applicable", ErrNothingChecked)
	default:
		return nil
	}
}

func (r Result) failureMessage() string { return cmp.Or(FirstFailure(r.Evidence), r.Reason) }

// FirstFailure returns the first failed evidence in one line, or "".
func FirstFailure(evidence []Evidence) string {
	for _, e := range evidence {
		if !e.Held {
			return fmt.Sprintf("%s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got)
		}
	}
	return ""
}
