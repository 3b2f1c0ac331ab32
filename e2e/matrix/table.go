// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/solonode/sno/conformance/report"
)

// WriteTable prints a row for each cluster and a column for each module, and below it the operators that stand in or
// were given, and the failures.
func WriteTable(w io.Writer, reports []report.Report) error {
	modules := modulesOf(reports)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SCENARIO\t"+strings.ToUpper(strings.Join(modules, "\t")))
	for _, r := range reports {
		row := []string{r.Scenario}
		for _, module := range modules {
			row = append(row, cell(r.Results, module))
		}
		_, _ = fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if lines := report.OperatorLines(reports...); len(lines) > 0 {
		if _, err := fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n")); err != nil {
			return fmt.Errorf("print the operators: %w", err)
		}
	}
	for _, r := range reports {
		for _, line := range faults(r) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return fmt.Errorf("print the failures: %w", err)
			}
		}
	}
	return nil
}

func modulesOf(reports []report.Report) []string {
	var modules []string
	for _, r := range reports {
		for _, result := range r.Results {
			if !slices.Contains(modules, result.Module) {
				modules = append(modules, result.Module)
			}
		}
	}
	return modules
}

// cell returns how many executed checks passed, after a mark: "✔ 5", "✘ 4 of 6", "? 5 of 6", or a dash if none was
// executed.
func cell(results []report.Result, module string) string {
	passed, failed, done := 0, 0, 0
	for _, r := range results {
		if r.Module != module || r.Status == report.Skipped || r.Status == report.NotApplicable {
			continue
		}
		done++
		switch {
		case r.Status == report.Passed, r.Status == report.Failed && r.Waiver != nil:
			passed++
		case r.Status == report.Failed:
			failed++
		}
	}
	switch {
	case done == 0:
		return "–"
	case passed == done:
		return fmt.Sprintf("✔ %d", done)
	case failed == 0:
		return fmt.Sprintf("? %d of %d", passed, done)
	}
	return fmt.Sprintf("✘ %d of %d", passed, done)
}

func faults(r report.Report) []string {
	if first, is := lost(r); is {
		return []string{"", fmt.Sprintf("%s  every check: %s: %s", r.Scenario, first.Status, first.Reason)}
	}
	var lines []string
	for _, result := range r.Results {
		if result.Waiver != nil || result.Status != report.Failed && result.Status != report.Inconclusive {
			continue
		}
		lines = append(lines, "", fmt.Sprintf("%s  %s %s: %s", r.Scenario, result.ID, result.Status, result.Title))
		if result.Reason != "" {
			lines = append(lines, "    "+result.Reason)
		}
		for _, e := range result.Evidence {
			if !e.Held {
				lines = append(lines, fmt.Sprintf("    %s %s: want %s, got %s", e.Object, e.Field, e.Want, e.Got))
			}
		}
	}
	return lines
}

// lost reports whether every selected check, of several, failed or is inconclusive for the same reason without
// evidence, and returns the first.
func lost(r report.Report) (report.Result, bool) {
	selected := slices.DeleteFunc(slices.Clone(r.Results), func(result report.Result) bool { return result.Status == report.Skipped })
	if len(selected) < 2 {
		return report.Result{}, false
	}
	first := selected[0]
	return first, !slices.ContainsFunc(selected, func(result report.Result) bool {
		return result.Status != report.Failed && result.Status != report.Inconclusive || result.Status != first.Status || len(result.Evidence) > 0 || result.Reason == "" || result.Reason != first.Reason
	})
}
