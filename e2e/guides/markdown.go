// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"regexp"
	"strings"
)

// Document is a Markdown file: its fenced blocks and its markers.
type Document struct {
	// Name is the path of the file, relative to the repository's root.
	Name string
	// Cluster is nil for a document without a marker for a cluster.
	Cluster *Cluster
	Blocks  []Block

	lines  []string
	faults []Fault
}

// Cluster is the marker for a cluster.
type Cluster struct {
	Line     int
	Scenario string
	Flags    []string
}

// Block is a fenced block.
type Block struct {
	// Line is the number of the opening fence, beginning at 1.
	Line     int
	Language string
	// RunBy and NotRun are the values of the marker before the block, empty for none.
	RunBy, NotRun string
	// Lines are the contents, without the indentation of the fence.
	Lines []string
}

// Fault is something in a document that must not be there.
type Fault struct {
	Document string
	Line     int
	Text     string
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.Document, f.Line, f.Text) }

const (
	indentedCode = 4
	tabStop      = 4
)

var (
	inlineCode    = regexp.MustCompile("`[^`]*`")
	anyMarker     = regexp.MustCompile(`<!--\s*guide\b`)
	marker        = regexp.MustCompile(`^<!-- guide: (cluster|run by|not run:) (\S.*) -->$`)
	openingFence  = regexp.MustCompile("^(`{3,})([^`]*)$|^(~{3,})(.*)$")
	listItem      = regexp.MustCompile(`^([-+*]|[0-9]{1,9}[.)])( |$)`)
	heading       = regexp.MustCompile(`^#{1,6}( |$)`)
	thematicBreak = regexp.MustCompile(`^(\*[ *]*|-[ -]*|_[ _]*)$`)
	fenceInQuote  = regexp.MustCompile("^(> ?)+(```|~~~|    )")
)

// Parse finds the blocks and the markers of a document, as CommonMark defines fenced and indented blocks, also in list
// items. What hides commands is a fault: indented code, and fences in block quotes.
func Parse(name, text string) *Document {
	p := parser{Document: &Document{Name: name, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}}
	for i, line := range p.lines {
		p.line(i+1, strings.TrimSuffix(line, "\r"))
	}
	p.endFence(len(p.lines) + 1)
	p.endMarker()
	return p.Document
}

// parser is the state between two lines.
type parser struct {
	*Document
	// items are the columns at which the contents of the open list items begin.
	items       []int
	inParagraph bool
	inComment   bool
	inIndented  bool
	// fence is nil outside of a block.
	fence *fence
	// pending is a marker that is waiting for the fence of the next line.
	pending *pendingMarker
}

type fence struct {
	block  Block
	run    string // the characters that open it
	column int    // at which it begins
	item   int    // the column of the contents of the list item that it is in
}

type pendingMarker struct {
	line        int
	kind, value string
}

func (p *parser) fault(line int, format string, args ...any) {
	p.faults = append(p.faults, Fault{p.Name, line, fmt.Sprintf(format, args...)})
}

func (p *parser) line(number int, raw string) {
	line := expandTabs(raw)
	text := strings.TrimLeft(line, " ")
	column := len(line) - len(text)
	if p.fence != nil {
		if text == "" || column >= p.fence.item {
			p.inFence(raw, line, text, column)
			return
		}
		// The list item ends, and the block with it.
		p.endFence(number)
	}
	switch {
	case p.inComment:
		p.inComment = !strings.Contains(text, "-->")
		p.checkMarker(number, text)
		return
	case text == "":
		p.inParagraph = false
		p.endMarker()
		return
	}
	p.leaveItems(column, text)
	for p.inItem(&column, &text) {
	}
	p.leaf(number, column, text)
}

// leaveItems ends the list items that the line is not in. A line that goes on with a paragraph is in all of them.
func (p *parser) leaveItems(column int, text string) {
	for len(p.items) > 0 && column < p.items[len(p.items)-1] && (!p.inParagraph || p.begins(text)) {
		p.items = p.items[:len(p.items)-1]
		p.inParagraph = false
	}
}

// begins reports whether a line ends the paragraph before it.
func (p *parser) begins(text string) bool {
	return listItem.MatchString(text) || heading.MatchString(text) || openingFence.MatchString(text) || isBreak(text) ||
		strings.HasPrefix(text, "<!--") || strings.HasPrefix(text, ">")
}

func isBreak(text string) bool {
	const least = 3
	return thematicBreak.MatchString(text) && len(strings.ReplaceAll(text, " ", "")) >= least
}

func (p *parser) base() int {
	if len(p.items) == 0 {
		return 0
	}
	return p.items[len(p.items)-1]
}

// inItem takes the bullet of a list item off the line.
func (p *parser) inItem(column *int, text *string) bool {
	bullet := listItem.FindString(*text)
	if bullet == "" || *column-p.base() >= indentedCode || isBreak(*text) || p.inParagraph && *column >= p.base() && !mayInterrupt(bullet, *text) {
		return false
	}
	width := len(strings.TrimSuffix(bullet, " "))
	rest := (*text)[width:]
	contents := strings.TrimLeft(rest, " ")
	blanks := len(rest) - len(contents)
	if blanks > indentedCode || contents == "" {
		blanks = 1
	}
	p.items = append(p.items, *column+width+blanks)
	*column += width + len(rest) - len(contents)
	*text = contents
	p.inParagraph = false
	return contents != ""
}

// mayInterrupt reports whether a list item may follow a paragraph without a blank line.
func mayInterrupt(bullet, text string) bool {
	number := strings.TrimRight(bullet, ".) ")
	return strings.TrimSpace(text) != strings.TrimSpace(bullet) && (number == "" || strings.Trim(number, "0123456789") != "" || number == "1")
}

// leaf handles what is left of a line after its list items.
func (p *parser) leaf(number, column int, text string) {
	wasIndented := p.inIndented
	p.inIndented = false
	switch opening := openingFence.FindStringSubmatch(text); {
	case text == "":
		return
	case column-p.base() >= indentedCode && !p.inParagraph:
		// A marker does not count in there.
		if p.inIndented = true; !wasIndented {
			p.fault(number, "indented code block: use a fence, which has a language")
		}
		p.endMarker()
	case opening != nil && column-p.base() < indentedCode:
		p.open(number, column, opening[1]+opening[3], strings.TrimSpace(opening[2]+opening[4]))
	case strings.HasPrefix(text, "<!--"):
		p.inParagraph = false
		p.inComment = !strings.Contains(text, "-->")
		p.checkMarker(number, text)
	default:
		if fenceInQuote.MatchString(text) {
			p.fault(number, "code in a block quote: take it out of the quote")
		}
		p.checkMarker(number, text)
		p.inParagraph = !heading.MatchString(text) && !isBreak(text)
	}
}

// checkMarker remembers the marker of a line, if it has one.
func (p *parser) checkMarker(number int, text string) {
	p.endMarker()
	if !anyMarker.MatchString(inlineCode.ReplaceAllString(text, "")) {
		return
	}
	match := marker.FindStringSubmatch(text)
	switch {
	case match == nil:
		p.fault(number, "unknown marker: write <!-- guide: cluster SCENARIO [FLAGS] -->, <!-- guide: run by TARGET --> or "+
			"<!-- guide: not run: REASON -->, alone on its line")
	case match[1] != "cluster":
		p.pending = &pendingMarker{number, match[1], match[2]}
	case p.Cluster != nil:
		p.fault(number, "a second marker for a cluster; the first is in line %d", p.Cluster.Line)
	default:
		words := strings.Fields(match[2])
		p.Cluster = &Cluster{Line: number, Scenario: words[0], Flags: words[1:]}
	}
}

// endMarker complains about a marker that no fence follows.
func (p *parser) endMarker() {
	if p.pending != nil {
		p.fault(p.pending.line, "a marker %q without a fence on the next line", p.pending.kind)
		p.pending = nil
	}
}

func (p *parser) open(number, column int, run, info string) {
	language, _, _ := strings.Cut(info, " ")
	p.fence = &fence{block: Block{Line: number, Language: language}, run: run, column: column, item: p.base()}
	if p.pending != nil {
		if p.pending.kind == "run by" {
			p.fence.block.RunBy = p.pending.value
		} else {
			p.fence.block.NotRun = p.pending.value
		}
		p.pending = nil
	}
	p.inParagraph = false
}

func (p *parser) inFence(raw, line, text string, column int) {
	closing := strings.TrimRight(text, " ")
	if column-p.fence.item < indentedCode && len(closing) >= len(p.fence.run) && strings.Trim(closing, p.fence.run[:1]) == "" {
		p.Blocks = append(p.Blocks, p.fence.block)
		p.fence = nil
		return
	}
	if p.fence.column > 0 {
		raw = line[min(column, p.fence.column):]
	}
	p.fence.block.Lines = append(p.fence.block.Lines, raw)
}

// endFence ends a block whose fence is not closed.
func (p *parser) endFence(number int) {
	if p.fence != nil {
		p.fault(p.fence.block.Line, "the fence is not closed before line %d", number)
		p.Blocks = append(p.Blocks, p.fence.block)
		p.fence = nil
	}
}

// expandTabs replaces tabs by the blanks that they stand for at the beginning of a line. Others stay.
func expandTabs(line string) string {
	var b strings.Builder
	for i, c := range line {
		switch c {
		case ' ':
			b.WriteByte(' ')
		case '\t':
			b.WriteString(strings.Repeat(" ", tabStop-b.Len()%tabStop))
		default:
			return b.String() + line[i:]
		}
	}
	return b.String()
}
