// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
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

// Text returns status, reason, evidence, figures, and the controls with a wrong result.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.ID, r.Status)
	if r.Reason != "" {
		fmt.Fprintf(&b, ": %s", r.Reason)
	}
	b.WriteString("\n")
	writeEvidence(&b, r.Evidence)
	for _, control := range r.Controls {
		if !control.Detected {
			fmt.Fprintf(&b, "control %q: the check must %s, got: %s\n", control.Name, control.Want, control.Got)
		}
	}
	for _, figure := range r.Figures {
		fmt.Fprintf(&b, "%s: %g %s\n", figure.Name, figure.Value, figure.Unit)
	}
	return b.String()
}

func writeEvidence(b *strings.Builder, all []Evidence) {
	if len(all) == 0 {
		return
	}
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "HELD\tOBJECT\tFIELD\tWANT\tGOT")
	for _, held := range []bool{false, true} {
		for _, e := range all {
			if e.Held == held {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", map[bool]string{true: "yes", false: "NO"}[held], e.Object, e.Field, e.Want, e.Got)
			}
		}
	}
	_ = table.Flush() // a strings.Builder returns no errors
}

// FailureMessage returns the first failed evidence or the reason in one line; empty if the check has not failed.
func (r Result) FailureMessage() string {
	if !r.mark().bad() {
		return ""
	}
	return cmp.Or(FirstFailure(r.Evidence), r.Reason, string(r.Status))
}

// mark is a status in a table, with a separate value for waived failures. The worst is the first.
type mark int

const (
	markFailed mark = iota
	markInconclusive
	markWaived
	markPassed
	markNotApplicable
	markSkipped
)

const marks = int(markSkipped) + 1

var markOf = map[Status]mark{
	Passed: markPassed, Failed: markFailed, Inconclusive: markInconclusive, NotApplicable: markNotApplicable, Skipped: markSkipped,
}

// mark returns markFailed for an unknown status too.
func (r Result) mark() mark {
	if r.Status == Failed && r.Waiver != nil {
		return markWaived
	}
	return markOf[r.Status]
}

// Symbol distinguishes marks without colour.
func (m mark) Symbol() string { return [marks]string{"✘", "?", "⚑", "✔", "–", "–"}[m] }

// Name is the CSS class.
func (m mark) Name() string {
	return [marks]string{"failed", "inconclusive", "waived", "passed", "na", "skipped"}[m]
}

func (m mark) Words() string {
	return [marks]string{"failed", "inconclusive", "waived", "passed", "not applicable", "skipped"}[m]
}

type tally [marks]int

func (t tally) worst() mark {
	return mark(max(0, slices.IndexFunc(t[:], func(n int) bool { return n > 0 }))) // a cell has results
}

// sentence returns the text below a matrix: "✘ 2 failed, ✔ 5 passed".
func (t tally) sentence() string {
	var parts []string
	for m, n := range t {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d %s", mark(m).Symbol(), n, mark(m).Words()))
		}
	}
	return strings.Join(parts, ", ")
}

func (t tally) done() int { return t[markFailed] + t[markInconclusive] + t[markWaived] + t[markPassed] }
