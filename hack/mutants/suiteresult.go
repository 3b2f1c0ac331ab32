// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	// NotSettled means that the suite did not run: with the mutation a cluster cannot be set up or does not become stable.
	NotSettled Outcome = "does not settle"
	// NotDetected means that no check fails. Many mutants have no effect on a cluster.
	NotDetected Outcome = "not seen"
	// NotRun means that the suite left no report.
	NotRun Outcome = "COULD NOT BE RUN"
)

func suiteResult(j *job, seen verdict, err error, took time.Duration) Result {
	result := Result{Module: j.module.Name(), Entry: j.entry, Outcome: NotDetected, By: seen.failing, Took: took, Detail: strings.Join(seen.notSettled, "\n\t")}
	switch {
	case errors.Is(err, ErrDoesNotApply):
		result.Outcome, result.Detail = DoesNotApply, strings.TrimPrefix(err.Error(), ErrDoesNotApply.Error()+": ")
	case err != nil:
		result.Outcome, result.Detail = NotRun, err.Error()
	case len(seen.failing) > 0:
		result.Outcome = Caught
	case len(seen.notSettled) > 0:
		result.Outcome = NotSettled
	}
	return result
}

// SuiteTable prints one aligned row per result, with the first of the checks that caught it, then the details, then a
// total. It returns ErrNoSuite if nothing could be tried.
func SuiteTable(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "MODULE\tMUTANT\tCAUGHT BY\tTIME") // errors surface in Flush
	counts := map[Outcome]int{}
	for _, r := range results {
		counts[r.Outcome]++
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%.0f s\n", r.Module, r.Entry.Name, r.caughtBy(), r.Took.Seconds())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range results {
		switch {
		case r.Outcome == NotDetected:
			fmt.Fprintf(&text, "\n%s/%s: %s: %s\n", r.Module, r.Entry.Name, NotDetected, r.Entry.Why)
		case r.Detail != "":
			fmt.Fprintf(&text, "\n%s/%s: %s: %s\n", r.Module, r.Entry.Name, r.Outcome, r.Detail)
		}
	}
	fmt.Fprintf(&text, "\n%d mutants: %d caught by a check, %d keep a cluster from settling, %d not seen by the suite, %d do not apply\n",
		len(results), counts[Caught], counts[NotSettled], counts[NotDetected], counts[DoesNotApply])
	if n := counts[NotRun]; n > 0 {
		fmt.Fprintf(&text, "%d of %d could not be run\n", n, len(results))
	}
	if n := counts[NotTried]; n > 0 {
		fmt.Fprintf(&text, "%d of %d NOT TRIED in this run\n", n, len(results))
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	if counts[Caught]+counts[NotSettled]+counts[NotDetected] == 0 {
		return fmt.Errorf("%w: none of %d mutants was tried", ErrNoSuite, len(results))
	}
	return nil
}

func (r Result) caughtBy() string {
	if r.Outcome != Caught {
		return string(r.Outcome)
	}
	const most = 4
	if len(r.By) <= most {
		return strings.Join(r.By, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(r.By[:most], ", "), len(r.By)-most)
}
