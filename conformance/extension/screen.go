// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
)

type screen struct {
	w      io.Writer
	colour bool
	widest int
}

func newScreen(w io.Writer, colour bool, checks []catalogue.Check) screen {
	s := screen{w: w, colour: colour}
	for _, check := range checks {
		s.widest = max(s.widest, utf8.RuneCountInString(check.Title))
	}
	return s
}

const statusWidth = len(report.NotApplicable)

// finished prints the result of a check.
func (s screen) finished(f finished) {
	status := s.paint(f.result.Status, fmt.Sprintf("%-*s", statusWidth, f.result.Status))
	fmt.Fprintf(s.w, "%s  %s  %-*s  %6.1f s\n", f.check.ID, status, s.widest, f.check.Title, f.result.Seconds)
}

func (s screen) paint(status report.Status, text string) string {
	colours := map[report.Status]string{
		report.Passed: "32", report.Failed: "31", report.Inconclusive: "33", report.NotApplicable: "2", report.Skipped: "2",
	}
	if !s.colour {
		return text
	}
	return "\x1b[" + colours[status] + "m" + text + "\x1b[0m"
}

func (s screen) summary(done report.Report, unused report.Unused, files []string) {
	fmt.Fprintf(s.w, "\n%s: controlPlaneTopology %s, infrastructureTopology %s\n\n", done.Scenario,
		cmp.Or(done.Topology.Observed.ControlPlane, "unknown"), cmp.Or(done.Topology.Observed.Infrastructure, "unknown"))
	table := tabwriter.NewWriter(s.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "module\t")
	for _, status := range report.Statuses() {
		fmt.Fprintf(table, "%s\t", status)
	}
	fmt.Fprint(table, "all\t\n")
	modules, counts := byModule(done.Results)
	for _, module := range append(modules, "all") {
		fmt.Fprintf(table, "%s\t", module)
		sum := 0
		for _, status := range report.Statuses() {
			fmt.Fprintf(table, "%d\t", counts[module][status])
			sum += counts[module][status]
		}
		fmt.Fprintf(table, "%d\t\n", sum)
	}
	_ = table.Flush() // an error of the terminal must not end the program
	for _, waiver := range unused.Expired {
		fmt.Fprintf(s.w, "the waiver of %s expired on %s: %s\n", waiver.ID, waiver.Expires, waiver.Why)
	}
	for _, waiver := range unused.Stale {
		fmt.Fprintf(s.w, "the waiver of %s is stale; delete it\n", waiver.ID)
	}
	if len(files) > 0 {
		fmt.Fprintf(s.w, "\nReport: %s\n", strings.Join(files, ", "))
	}
}

func byModule(results []report.Result) (modules []string, counts map[string]map[report.Status]int) {
	counts = map[string]map[report.Status]int{"all": {}}
	for _, result := range results {
		if counts[result.Module] == nil {
			counts[result.Module] = map[report.Status]int{}
			modules = append(modules, result.Module)
		}
		counts[result.Module][result.Status]++
		counts["all"][result.Status]++
	}
	return modules, counts
}
