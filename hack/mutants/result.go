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

// Outcome is the result of trying a mutant.
type Outcome string

const (
	// Caught means that the mutant compiled and its test failed.
	Caught Outcome = "caught"
	// Cached means that an earlier run of the same bytes caught it, and it was not tried again.
	Cached Outcome = "cached"
	// NotTried means that no time was left.
	NotTried Outcome = "NOT TRIED"
	// Survived means that the test passed with the mutation and proves nothing.
	Survived Outcome = "SURVIVED"
	// DoesNotApply means that the entry could not be tried as written.
	DoesNotApply Outcome = "DOES NOT APPLY"
)

// Result is one row of the table.
type Result struct {
	Module  string
	Entry   Entry
	Outcome Outcome
	// By has the ids of the checks that caught it, with a Suite.
	By []string
	// Detail explains Survived and DoesNotApply.
	Detail string
	Took   time.Duration
}

func resultOf(module string, entry Entry, err error, took time.Duration) Result {
	result := Result{Module: module, Entry: entry, Outcome: Caught, Took: took}
	switch {
	case err == nil:
	case errors.Is(err, errSurvived):
		result.Outcome, result.Detail = Survived, entry.Why
	default:
		result.Outcome, result.Detail = DoesNotApply, strings.TrimPrefix(err.Error(), ErrDoesNotApply.Error()+": ")
	}
	return result
}

// Table prints one aligned row per result, then the details of those that were tried and not caught, then a total. It
// returns their number.
func Table(w io.Writer, results []Result) (int, error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "MODULE\tMUTANT\tFILE\tMUST FAIL\tRESULT\tTIME") // errors surface in Flush
	counts := map[Outcome]int{}
	for _, r := range results {
		counts[r.Outcome]++
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.1f s\n", r.Module, r.Entry.Name, r.Entry.File, r.Entry.mustFail(), r.Outcome, r.Took.Seconds())
	}
	if err := table.Flush(); err != nil {
		return 0, err
	}
	var text strings.Builder
	for _, r := range results {
		if r.Detail != "" {
			fmt.Fprintf(&text, "\n%s/%s: %s: %s\n", r.Module, r.Entry.Name, r.Outcome, r.Detail)
		}
	}
	fmt.Fprintf(&text, "\n%d mutants: %d caught, %d survived, %d do not apply\n",
		len(results), counts[Caught]+counts[Cached], counts[Survived], counts[DoesNotApply])
	if n := counts[Cached]; n > 0 {
		fmt.Fprintf(&text, "known from an earlier run of the same bytes: %d of those caught\n", n)
	}
	if n := counts[NotTried]; n > 0 {
		fmt.Fprintf(&text, "%d of %d NOT TRIED in this run: budget\n", n, len(results))
	}
	_, err := io.WriteString(w, text.String())
	return counts[Survived] + counts[DoesNotApply], err
}

func (e Entry) mustFail() string {
	if len(e.Command) > 0 {
		return strings.Join(e.Command, " ")
	}
	const longest = 60
	text := e.Package + " " + e.Test
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest-3]) + "..."
	}
	return text
}
