// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// WriteMarkdown writes the matrix of scenarios and modules, the host operators, all failures with evidence, the
// waivers, and the measurements.
func WriteMarkdown(w io.Writer, reports ...Report) error {
	var b bytes.Buffer
	writeMatrix(&b, reports)
	writeOperators(&b, reports)
	writeFaults(&b, reports)
	writeWaived(&b, reports)
	writeMeasured(&b, reports)
	_, err := w.Write(b.Bytes())
	return err
}

func writeMatrix(b *bytes.Buffer, reports []Report) {
	columns := modules(reports)
	b.WriteString("| scenario |")
	for _, name := range columns {
		fmt.Fprintf(b, " %s |", plain(name))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	var total tally
	for _, report := range reports {
		fmt.Fprintf(b, "| %s |", plain(report.Scenario))
		for _, cell := range report.cells(columns) {
			fmt.Fprintf(b, " %s |", cell.Tally)
			total.add(cell.Tally)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "\n%s\n", total.sentence())
}

func (t tally) String() string {
	t[markNotApplicable] += t[markSkipped] // both have the same symbol
	t[markSkipped] = 0
	var parts []string
	for m, n := range t {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", mark(m).Symbol(), n))
		}
	}
	return strings.Join(parts, " ")
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

func writeFaults(b *bytes.Buffer, reports []Report) {
	b.WriteString("\n## Failures\n")
	before := b.Len()
	for _, report := range reports {
		for _, result := range report.Results {
			if m := result.mark(); m == markFailed || m == markInconclusive {
				fmt.Fprintf(b, "\n### %s %s on %s: %s\n\n", m.Symbol(), plain(result.ID), plain(report.Scenario), m.Words())
				writeResult(b, result)
			}
		}
	}
	if b.Len() == before {
		b.WriteString("\nNone.\n")
	}
}

func writeResult(b *bytes.Buffer, r Result) {
	fmt.Fprintf(b, "**%s** (%s, %s, %s)\n\nRequirement: %s\n", plain(r.Title), plain(r.Module), plain(r.Level), plain(r.Tier), plain(r.Requirement))
	if r.Reason != "" {
		fmt.Fprintf(b, "\nReason: %s\n", plain(r.Reason))
	}
	for i, e := range r.Evidence {
		if i == 0 {
			b.WriteString("\n| | object | field | want | got |\n|---|---|---|---|---|\n")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", symbol(e.Held), code(e.Object), code(e.Field), code(e.Want), code(e.Got))
	}
	for i, c := range r.Controls {
		if i == 0 {
			b.WriteString("\n| | control | check | got |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(b, "| %s | %s | must %s | %s |\n", symbol(c.Detected), plain(c.Name), plain(c.Want), code(c.Got))
	}
}

func writeWaived(b *bytes.Buffer, reports []Report) {
	b.WriteString("\n## Waivers\n")
	rows := 0
	for _, report := range reports {
		for _, result := range report.Results {
			if result.mark() != markWaived {
				continue
			}
			if rows++; rows == 1 {
				b.WriteString("\n| check | scenario | failure | reason of the waiver | until |\n|---|---|---|---|---|\n")
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", plain(result.ID), plain(report.Scenario), code(result.failureMessage()), plain(result.Waiver.Why),
				plain(result.Waiver.Expires))
		}
	}
	if rows == 0 {
		b.WriteString("\nNone.\n")
	}
}

func writeMeasured(b *bytes.Buffer, reports []Report) {
	for _, report := range reports {
		if len(report.Measurements) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## Measured on %s\n\n| what | measured | bound | held | compared with |\n|---|---|---|---|---|\n", plain(report.Scenario))
		for _, m := range report.Measurements {
			held := "yes"
			if !m.Held {
				held = "**no**"
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", plain(m.What), plain(m.Measured), plain(m.Bound), held, plain(m.Compared))
		}
	}
}

func plain(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if strings.ContainsRune("\\`*_{}[]<>#|~&@", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func code(text string) string {
	text = strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
	if text == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + strings.ReplaceAll(text, "|", `\|`) + fence
}
