// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// IncreaseThreshold is the factor above which an increase of a figure is reported. On a busy machine a figure can
// increase by half. For all figures less is better.
const IncreaseThreshold = 2.0

// Difference contains the changes from one run to another. Results are matched by scenario and id.
type Difference struct {
	// Regressions are checks that passed or were waived and now fail, are inconclusive or skipped, and removed checks
	// and scenarios. Checks that are now not applicable or waived are not included.
	Regressions []Change
	// Fixes are checks that failed or were inconclusive, waived or not, and pass now.
	Fixes  []Change
	Added  []Change
	Others []Change
	// Increases are figures that grew by more than IncreaseThreshold. They are no regressions.
	Increases []Increase
}

// Change is that of a check, or of a scenario if ID is empty.
type Change struct {
	Scenario, ID, Title string
	// Before and After are a status, "waived", or empty if the check did not exist.
	Before, After string
	Why           string
}

// Increase is a figure that became worse.
type Increase struct {
	Scenario, ID  string
	Before, After Figure
}

// Regressed reports whether anything became worse.
func (d Difference) Regressed() bool { return len(d.Regressions) > 0 }

// Diff compares two sets of reports. Scenarios must be unique in each, as [ReadFiles] ensures.
func Diff(before, after []Report) Difference {
	var d Difference
	pair(before, after, func(r Report) string { return r.Scenario }, func(was, is *Report) {
		switch {
		case is == nil:
			d.Regressions = append(d.Regressions, Change{Scenario: was.Scenario, Before: "reported"})
		case was == nil:
			d.Added = append(d.Added, Change{Scenario: is.Scenario, After: "reported"})
		default:
			d.compare(is.Scenario, was.Results, is.Results)
		}
	})
	return d
}

func (d *Difference) compare(scenario string, before, after []Result) {
	pair(before, after, func(r Result) string { return r.ID }, func(was, is *Result) {
		switch {
		case is == nil:
			d.Regressions = append(d.Regressions, Change{scenario, was.ID, was.Title, was.mark().Words(), "", ""})
		case was == nil:
			d.Added = append(d.Added, Change{scenario, is.ID, is.Title, "", is.mark().Words(), is.failureMessage()})
		default:
			d.change(scenario, *was, *is)
			pair(was.Figures, is.Figures, func(f Figure) string { return f.Name + " " + f.Unit }, func(old, figure *Figure) {
				if old != nil && figure != nil && figure.Value > old.Value*IncreaseThreshold {
					d.Increases = append(d.Increases, Increase{scenario, is.ID, *old, *figure})
				}
			})
		}
	})
}

// pair calls each with the items of the same key; nil if there is none. New ones are last.
func pair[T any](before, after []T, key func(T) string, each func(was, is *T)) {
	find := func(items []T, item T) *T {
		if i := slices.IndexFunc(items, func(other T) bool { return key(other) == key(item) }); i >= 0 {
			return &items[i]
		}
		return nil
	}
	for i := range before {
		each(&before[i], find(after, before[i]))
	}
	for i := range after {
		if find(before, after[i]) == nil {
			each(nil, &after[i])
		}
	}
}

func (d *Difference) change(scenario string, before, after Result) {
	if before.mark() == after.mark() {
		return
	}
	change := Change{scenario, after.ID, after.Title, before.mark().Words(), after.mark().Words(), after.failureMessage()}
	switch {
	case before.mark().good() && after.mark().lost():
		d.Regressions = append(d.Regressions, change)
	case before.mark().bad() && after.mark() == markPassed:
		d.Fixes = append(d.Fixes, change)
	default:
		d.Others = append(d.Others, change)
	}
}

func (m mark) good() bool { return m == markPassed || m == markWaived }

func (m mark) bad() bool { return m == markFailed || m == markInconclusive || m == markWaived }

func (m mark) lost() bool { return m == markFailed || m == markInconclusive || m == markSkipped }

// WriteText writes a table for people.
func (d Difference) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := 0
	for _, part := range []struct {
		name    string
		changes []Change
	}{{"regression", d.Regressions}, {"fix", d.Fixes}, {"new", d.Added}, {"other", d.Others}} {
		for _, c := range part.changes {
			rows++
			fmt.Fprintf(table, "%s\t%s\t%s\t%s -> %s\t%s\n", part.name, c.Scenario, cmp.Or(c.ID, "all checks"), cmp.Or(c.Before, "absent"), cmp.Or(c.After, "absent"),
				cmp.Or(c.Why, c.Title))
		}
	}
	for _, g := range d.Increases {
		rows++
		fmt.Fprintf(table, "increase\t%s\t%s\t%s -> %s\t%s\n", g.Scenario, g.ID, g.Before.amount(), g.After.amount(), g.After.Name)
	}
	if rows == 0 {
		fmt.Fprintln(table, "no differences")
	}
	return table.Flush()
}

func (f Figure) amount() string { return fmt.Sprintf("%.4g %s", f.Value, f.Unit) }
