// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

type terminal struct {
	out    io.Writer
	colour bool
}

const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	dim   = "\x1b[2m"
	plain = "\x1b[0m"
)

// printf prints a line. A closed terminal ends the process by a signal, so errors are ignored.
func (t terminal) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format+"\n", args...)
}

func (t terminal) paint(colour, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return colour + text + plain
}

func (t terminal) heading(format string, args ...any) {
	t.printf("\n%s", t.paint(bold, fmt.Sprintf(format, args...)))
}

// columns prints rows as they come, with the widths of the header and of samples.
type columns struct {
	t      terminal
	widths []int
}

// table prints a header and all rows, aligned. The last column is not padded.
func (t terminal) table(header []string, rows [][]string) {
	c := t.columns(header, rows...)
	for _, row := range rows {
		c.row(row...)
	}
}

// columns prints the header and returns a printer of further rows that are aligned with it and with the samples.
func (t terminal) columns(header []string, samples ...[]string) columns {
	c := columns{t: t, widths: make([]int, len(header))}
	for _, row := range append([][]string{header}, samples...) {
		for i, cell := range row {
			c.widths[i] = max(c.widths[i], utf8.RuneCountInString(cell))
		}
	}
	t.printf("  %s", t.paint(dim, c.line(header)))
	return c
}

func (c columns) row(cells ...string) { c.t.printf("  %s", c.line(cells)) }

func (c columns) line(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(cell)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", max(0, c.widths[i]-visible(cell))+2))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func visible(cell string) int {
	for _, code := range []string{bold, green, red, dim, plain} {
		cell = strings.ReplaceAll(cell, code, "")
	}
	return utf8.RuneCountInString(cell)
}
