// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

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

func (r Result) mark() mark {
	switch r.Status {
	case Passed:
		return markPassed
	case Failed:
		if r.Waiver != nil {
			return markWaived
		}
		return markFailed
	case Inconclusive:
		return markInconclusive
	case NotApplicable:
		return markNotApplicable
	case Skipped:
		return markSkipped
	}
	// unknown status
	return markFailed
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
