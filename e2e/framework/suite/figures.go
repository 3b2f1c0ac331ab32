// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/prometheus/procfs"
)

// Row is a row of a table of figures.
type Row struct {
	What, Measured, Bound, Compared string
	// Held reports whether the bound was met.
	Held bool
}

// Figure returns a row without a bound.
func Figure(what, format string, args ...any) Row {
	return Row{What: what, Measured: fmt.Sprintf(format, args...), Bound: "-", Compared: "-", Held: true}
}

// Seconds returns a duration as the tables have it.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Table is the name of a table of docs/benchmarks.md.
type Table string

// The tables.
const (
	Bench         Table = "measured"
	RealKubelets  Table = "real kubelets"
	Installations Table = "installations"
	Faults        Table = "faults"
	Fleet         Table = "fleet"
)

// Record adds rows of a table to the report of the spec. All rows of a suite are printed at its end, and written into
// the document of -write.
func Record(table Table, rows ...Row) {
	ginkgo.AddReportEntry(string(table), rows, ginkgo.ReportEntryVisibilityNever)
	gomega.ExpectWithOffset(1, Print(ginkgo.GinkgoWriter, rows)).To(gomega.Succeed())
}

// Require records rows, and fails the spec if a bound was not met.
func Require(table Table, rows ...Row) {
	ginkgo.GinkgoHelper()
	Record(table, rows...)
	for _, row := range rows {
		gomega.Expect(row.Held).To(gomega.BeTrue(), "%s: %s, bound %s", row.What, row.Measured, row.Bound)
	}
}

// Rows returns the recorded rows of a table.
func Rows(all ginkgo.Report, table Table) []Row {
	ginkgo.GinkgoHelper()
	var rows []Row
	for _, spec := range all.SpecReports {
		for _, entry := range spec.ReportEntries {
			if entry.Name != string(table) {
				continue
			}
			// Between processes values are sent as JSON.
			text := Must(json.Marshal(entry.GetRawValue()))
			var its []Row
			gomega.Expect(json.Unmarshal(text, &its)).To(gomega.Succeed())
			rows = append(rows, its...)
		}
	}
	return rows
}

// reportFigures prints the rows of a suite, and writes those of a run without failures into the document. Rows that
// were not measured now stay, unless the whole suite ran.
func reportFigures(all ginkgo.Report) {
	for _, table := range []Table{Bench, RealKubelets, Installations, Faults, Fleet} {
		rows := Rows(all, table)
		if len(rows) == 0 {
			continue
		}
		gomega.Expect(Print(os.Stdout, rows)).To(gomega.Succeed())
		if *write == "" || !all.SuiteSucceeded {
			continue
		}
		partial := table == RealKubelets || all.SuiteConfig.LabelFilter != "" || len(all.SuiteConfig.FocusStrings) > 0
		document := Must(table.Document(Must(os.ReadFile(*write)), rows, Machine(), partial))
		gomega.Expect(os.WriteFile(*write, document, 0o644)).To(gomega.Succeed()) //nolint:gosec // a document
	}
}

// Print writes the rows as an aligned table for a terminal.
func Print(out io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tMEASURED\tBOUND\tHELD")
	for _, row := range rows {
		held := "yes"
		if !row.Held {
			held = "NO"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", row.What, row.Measured, row.Bound, held)
	}
	return w.Flush()
}

// ErrMarkers means that a document has no place for the table.
var ErrMarkers = errors.New("no place for the table")

// Document writes the rows and the machine between the table's markers in a Markdown document, and returns the new
// document. With partial, rows that were not measured now stay, before the others.
func (t Table) Document(document []byte, rows []Row, machine string, partial bool) ([]byte, error) {
	begin, end := "<!-- "+string(t)+": begin -->", "<!-- "+string(t)+": end -->"
	before, rest, found := bytes.Cut(document, []byte(begin))
	old, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("%w: the document needs the lines %q and %q", ErrMarkers, begin, end)
	}
	var b bytes.Buffer
	b.Write(before)
	fmt.Fprintf(&b, "%s\n\nMachine: %s\n\n| what | measured | bound | held | compared with |\n|---|---|---|---|---|\n", begin, machine)
	if partial {
		b.WriteString(strings.Join(kept(old, rows), ""))
	}
	for _, row := range rows {
		held := "yes"
		if !row.Held {
			held = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.What, row.Measured, row.Bound, held, row.Compared)
	}
	fmt.Fprintf(&b, "\n%s", end)
	b.Write(after)
	return b.Bytes(), nil
}

// kept returns the lines of the old table, without its head, that no row replaces.
func kept(table []byte, rows []Row) []string {
	const head = 2
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(string(table))), func(line string) bool { return !strings.HasPrefix(line, "|") })
	return slices.DeleteFunc(lines[min(head, len(lines)):], func(line string) bool {
		what, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		return slices.ContainsFunc(rows, func(row Row) bool { return row.What == what })
	})
}

// Machine describes the machine in one line: processors, memory, system, Go.
func Machine() string {
	model, memory := "unknown processor", "unknown memory"
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if processors, err := proc.CPUInfo(); err == nil && len(processors) > 0 {
			model = processors[0].ModelName
		}
		if all, err := proc.Meminfo(); err == nil && all.MemTotalBytes != nil {
			memory = fmt.Sprintf("%.0f GiB", float64(*all.MemTotalBytes)/(1<<30))
		}
	}
	return fmt.Sprintf("%d cores (%s), %s, %s/%s, %s", runtime.NumCPU(), model, memory, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
