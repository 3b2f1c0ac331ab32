// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// Print writes the rows as an aligned table for a terminal.
func Print(out io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(w, "WHAT\tMEASURED\tBOUND\tHELD")
	errs := []error{err}
	for _, row := range rows {
		held := "yes"
		if !row.Held {
			held = "NO"
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", row.What, row.Measured, row.Bound, held)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, w.Flush())...)
}

// Table is the name of a table in a document.
type Table string

// The tables of docs/benchmarks.md.
const (
	Bench         Table = "measured"
	RealKubelets  Table = "real kubelets"
	Installations Table = "installations"
	Faults        Table = "faults"
)

func (t Table) begin() string { return "<!-- " + string(t) + ": begin -->" }
func (t Table) end() string   { return "<!-- " + string(t) + ": end -->" }

// ErrMarkers means that a document has no place for the table.
var ErrMarkers = errors.New("no place for the table")

// Document writes the rows and the machine between the table's markers in a Markdown document, and returns the new
// document. With partial, rows that were not measured now stay, before the others.
func (t Table) Document(document []byte, rows []Row, machine string, partial bool) ([]byte, error) {
	before, rest, found := bytes.Cut(document, []byte(t.begin()))
	old, after, closed := bytes.Cut(rest, []byte(t.end()))
	if !found || !closed {
		return nil, fmt.Errorf("%w: the document needs the lines %q and %q", ErrMarkers, t.begin(), t.end())
	}
	var b bytes.Buffer
	b.Write(before)
	fmt.Fprintf(&b, "%s\n\nMachine: %s\n\n| what | measured | bound | held | compared with |\n|---|---|---|---|---|\n", t.begin(), machine)
	if partial {
		for _, line := range kept(old, rows) {
			b.WriteString(line)
		}
	}
	for _, row := range rows {
		held := "yes"
		if !row.Held {
			held = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.What, row.Measured, row.Bound, held, row.Compared)
	}
	fmt.Fprintf(&b, "\n%s", t.end())
	b.Write(after)
	return b.Bytes(), nil
}

// kept returns the lines of the old table, without its head, that no row replaces.
func kept(table []byte, rows []Row) []string {
	const head = 2
	var lines []string
	seen := 0
	for line := range strings.Lines(string(table)) {
		what, isRow := strings.CutPrefix(line, "|")
		if !isRow {
			continue
		}
		seen++
		what, _, _ = strings.Cut(what, "|")
		what = strings.TrimSpace(what)
		if seen > head && !slices.ContainsFunc(rows, func(row Row) bool { return row.What == what }) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Machine describes the machine in one line: processors, memory, system, Go.
func Machine() string {
	model, memory := "unknown processor", "unknown memory"
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(content)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	if content, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kilobytes int64
		if _, err := fmt.Sscanf(string(content), "MemTotal: %d kB", &kilobytes); err == nil {
			memory = fmt.Sprintf("%.0f GiB", float64(kilobytes)/(1<<20))
		}
	}
	return fmt.Sprintf("%d cores (%s), %s, %s/%s, %s", runtime.NumCPU(), model, memory, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
