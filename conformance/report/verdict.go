package report

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrFailed says that a check failed or is inconclusive, and no waiver covers it. All of them follow.
	ErrFailed = errors.New("not conformant")
	// ErrNothingChecked says that no check was done, so that nothing is known.
	ErrNothingChecked = errors.New("nothing was checked")
)

// Verdict is nil when at least one check was done and all that were done passed or are waived. The waivers are those that [Apply] has set;
// whether they have expired since is not looked at again.
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

// failureMessage is the shortest text that says why a check did not pass.
func (r Result) failureMessage() string {
	for _, e := range r.Evidence {
		if !e.Held {
			return fmt.Sprintf("%s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got)
		}
	}
	return r.Reason
}
