// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/report"
)

type encoder func(io.Writer, ...report.Report) error

var encoders = map[string]encoder{
	".yaml": report.WriteYAML, ".json": report.WriteJSON, ".xml": report.WriteJUnit,
	".html": func(w io.Writer, reports ...report.Report) error {
		return report.WriteHTML(w, report.HTML{Reports: reports})
	},
}

var folderFiles = []string{"report.yaml", "report.json", "junit.xml", "report.html"}

// outputFiles expands folders to their files and creates the folders, so that invalid names fail before the run.
func outputFiles(outputs []string) ([]string, error) {
	var files []string
	for _, output := range outputs {
		folder := output
		if _, ok := encoders[filepath.Ext(output)]; ok {
			folder = filepath.Dir(output)
			files = append(files, output)
		} else {
			for _, name := range folderFiles {
				files = append(files, filepath.Join(output, name))
			}
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("output %s: %w", output, err)
		}
	}
	return files, nil
}

func writeFile(name string, done report.Report, encode encoder) error {
	if name == "" {
		return nil
	}
	var text bytes.Buffer
	err := encode(&text, done)
	if err == nil {
		err = os.WriteFile(name, text.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// WriteFolder writes a report into a folder in all formats, with the names of run -o.
func WriteFolder(folder string, done report.Report) error {
	files, err := outputFiles([]string{folder})
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := writeFile(file, done, encoders[filepath.Ext(file)]); err != nil {
			return err
		}
	}
	return nil
}

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
	const all = "all"
	var modules []string
	for _, result := range done.Results {
		if !slices.Contains(modules, result.Module) {
			modules = append(modules, result.Module)
		}
	}
	for _, module := range append(modules, all) {
		of := report.Report{Results: slices.DeleteFunc(slices.Clone(done.Results), func(r report.Result) bool { return module != all && r.Module != module })}
		of.Count()
		fmt.Fprintf(table, "%s\t", module)
		for _, status := range report.Statuses() {
			fmt.Fprintf(table, "%d\t", of.Counts[status])
		}
		fmt.Fprintf(table, "%d\t\n", len(of.Results))
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
