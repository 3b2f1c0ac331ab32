// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Document is a Markdown file.
type Document struct {
	// Name is the path of the file, relative to the repository's root.
	Name string
	// Cluster has the arguments of the marker for a cluster, and ClusterLine its line; nil for none.
	Cluster     []string
	ClusterLine int
	Blocks      []Block

	lines  []string
	faults []string
}

// Block is a fenced block.
type Block struct {
	Line     int // of the opening fence, beginning at 1
	Language string
	// RunBy and NotRun are the values of the marker before the block, empty for none.
	RunBy, NotRun string
	Lines         []string // without the indentation of the fence
}

var marker = regexp.MustCompile(`^<!-- guide: (cluster|run by|not run:) (\S.*) -->$`)

// Parse finds the blocks and the markers of a document. What hides commands is a fault: indented code, and fences in
// block quotes.
func Parse(name string, source []byte) *Document {
	d := &Document{Name: name, lines: strings.Split(strings.TrimSuffix(string(source), "\n"), "\n")}
	lineOf := func(offset int) int { return bytes.Count(source[:offset], []byte("\n")) + 1 }
	_ = ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeBlock:
			d.fault(lineOf(n.Lines().At(0).Start), "indented code block: use a fence, which has a language")
		case *ast.FencedCodeBlock:
			b := Block{Language: string(n.Language(source))}
			switch {
			case n.Info != nil:
				b.Line = lineOf(n.Info.Segment.Start)
			case n.Lines().Len() > 0:
				b.Line = lineOf(n.Lines().At(0).Start) - 1
			}
			for i := range n.Lines().Len() {
				segment := n.Lines().At(i)
				b.Lines = append(b.Lines, strings.TrimRight(string(segment.Value(source)), "\r\n"))
			}
			if n.Parent().Kind() == ast.KindBlockquote {
				d.fault(b.Line, "code in a block quote: take it out of the quote")
			}
			if before, is := n.PreviousSibling().(*ast.HTMLBlock); is {
				switch match := marker.FindStringSubmatch(htmlOf(before, source)); {
				case match != nil && match[1] == "run by":
					b.RunBy = match[2]
				case match != nil && match[1] == "not run:":
					b.NotRun = match[2]
				}
			}
			d.Blocks = append(d.Blocks, b)
		case *ast.HTMLBlock:
			d.marker(lineOf(n.Lines().At(0).Start), htmlOf(n, source), n.NextSibling())
		case *ast.RawHTML:
			if html := string(n.Segments.Value(source)); strings.HasPrefix(html, "<!-- guide") {
				d.fault(lineOf(n.Segments.At(0).Start), "unknown marker: it must be alone on its line")
			}
		}
		return ast.WalkContinue, nil
	})
	return d
}

func htmlOf(n *ast.HTMLBlock, source []byte) string {
	return strings.TrimSpace(string(n.Lines().Value(source)))
}

func (d *Document) fault(line int, format string, args ...any) {
	d.faults = append(d.faults, fmt.Sprintf("%s:%d: %s", d.Name, line, fmt.Sprintf(format, args...)))
}

// marker checks a comment that begins like a marker.
func (d *Document) marker(line int, html string, next ast.Node) {
	if !strings.HasPrefix(html, "<!-- guide") {
		return
	}
	match := marker.FindStringSubmatch(html)
	_, beforeFence := next.(*ast.FencedCodeBlock)
	switch {
	case match == nil:
		d.fault(line, "unknown marker: write <!-- guide: cluster SCENARIO [FLAGS] -->, <!-- guide: run by TARGET --> or <!-- guide: not run: REASON -->")
	case match[1] == "cluster" && d.Cluster != nil:
		d.fault(line, "a second marker for a cluster; the first is in line %d", d.ClusterLine)
	case match[1] == "cluster":
		d.Cluster, d.ClusterLine = strings.Fields(match[2]), line
	case !beforeFence:
		d.fault(line, "a marker %q without a fence after it", match[1])
	}
}

// written are folders of documents that a program writes from the help of commands.
var written = []string{"docs/kubectl-sno"}

// Documents reads all Markdown files below root that people write, except data of tests.
func Documents(root string) ([]*Document, error) {
	var all []*Document
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || slices.Contains(written, name)):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		source, err := os.ReadFile(filepath.Join(root, name))
		all = append(all, Parse(name, source))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the documents: %w", err)
	}
	return all, nil
}

// Command is a command of a console block with what it prints, or all commands of an sh block.
type Command struct {
	Line int // where it begins
	Text string
	// Shown reports whether the document has its output: Want, the lines from the index from on.
	Shown bool
	Want  []string
	from  int
}

const (
	prompt   = "$ "
	anything = "..."
	console  = "console"
	shell    = "sh"
)

// Commands are those of the document that are run on its cluster, in its order.
func (d *Document) Commands() []Command {
	var all []Command
	for _, b := range d.Blocks {
		switch {
		case d.Cluster == nil || b.RunBy != "" || b.NotRun != "":
		case b.Language == shell:
			all = append(all, Command{Line: b.Line + 1, Text: strings.Join(b.Lines, "\n")})
		case b.Language == console:
			goesOn := false
			for i, line := range b.Lines {
				begins := strings.HasPrefix(line, prompt) && !goesOn
				if begins {
					all = append(all, Command{Line: b.Line + i + 1, Text: strings.TrimPrefix(line, prompt), Shown: true, from: b.Line + i + 1})
				}
				if last := &all[len(all)-1]; goesOn {
					last.Text, last.from = last.Text+"\n"+line, last.from+1
				} else if !begins {
					last.Want = append(last.Want, line)
				}
				goesOn = strings.HasSuffix(line, `\`) && (goesOn || begins)
			}
		}
	}
	return all
}
