// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/hack/workspace"
)

// glossaryFile lists the terms that are not used in text and names, and the rules for commit subjects. Its header
// describes the format.
const glossaryFile = "hack/glossary.yaml"

const minPrefix = 3

const maxPhrase = 100

// commentMarks are characters that begin a line of a comment or of Markdown.
var commentMarks = []byte("/#*>")

// inText is the scope of a term that identifiers of Go may contain.
const inText = "text"

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

type glossary struct {
	// Since is the commit after which subjects are checked.
	Since    string       `json:"since"`
	Subjects subjectRules `json:"subjects"`
	Terms    []*term      `json:"terms"`

	// everywhere has the patterns of the terms without a scope, text those of the others.
	everywhere, text index
}

type term struct {
	Name     string   `json:"term"`
	Patterns []string `json:"patterns"`
	// In limits the term to inText.
	In      string       `json:"in"`
	Write   string       `json:"write"`
	Finds   []string     `json:"finds"`
	Accepts []string     `json:"accepts"`
	Allow   []*allowance `json:"allow"`

	compiled []*pattern
}

type pattern struct {
	term   *term
	source string
	prefix []byte
	// regexp matches at the beginning of a text.
	regexp *regexp.Regexp
}

type index map[[minPrefix]byte][]*pattern

func (x index) add(patterns ...*pattern) {
	for _, p := range patterns {
		key := [minPrefix]byte(p.prefix)
		x[key] = append(x[key], p)
	}
}

type allowance struct {
	// Path is a pattern of path.Match, or a folder followed by "/..." for every file below it.
	Path string `json:"path"`
	// Line is a regular expression for the line of the occurrence. The empty one matches each line.
	Line string `json:"line"`
	Why  string `json:"why"`

	line *regexp.Regexp
	used bool
}

type hit struct {
	file  string
	line  int
	text  string
	term  string
	write string
}

func (h hit) String() string {
	return fmt.Sprintf("%s:%d: %q: write %s", h.file, h.line, h.text, h.write)
}

func readGlossary(ws *workspace.Workspace) (*glossary, error) {
	data, err := os.ReadFile(ws.Path(glossaryFile))
	if err != nil {
		return nil, err
	}
	return parseGlossary(data)
}

func parseGlossary(data []byte) (*glossary, error) {
	g := &glossary{everywhere: index{}, text: index{}}
	if err := yaml.UnmarshalStrict(data, g); err != nil {
		return nil, fmt.Errorf("%s: %w", glossaryFile, err)
	}
	for _, t := range g.Terms {
		if err := t.compile(); err != nil {
			return nil, fmt.Errorf("%s: term %q: %w", glossaryFile, t.Name, err)
		}
		if t.In == inText {
			g.text.add(t.compiled...)
		} else {
			g.everywhere.add(t.compiled...)
		}
	}
	return g, nil
}

func (t *term) compile() error {
	for _, source := range t.Patterns {
		unanchored, err := regexp.Compile(source)
		if err != nil {
			return err
		}
		prefix, _ := unanchored.LiteralPrefix()
		switch {
		case len(prefix) < minPrefix:
			return fmt.Errorf("pattern %q begins with fewer than %d literal characters", source, minPrefix)
		case source != strings.ToLower(source):
			return fmt.Errorf("pattern %q has capitals; it is compared with text in lower case", source)
		}
		t.compiled = append(t.compiled, &pattern{t, source, []byte(prefix), regexp.MustCompile(`^(?:` + source + `)\b`)})
	}
	for _, a := range t.Allow {
		compiled, err := regexp.Compile(a.Line)
		if err != nil {
			return err
		}
		a.line = compiled
	}
	return nil
}

// faults returns what is wrong with the file itself.
func (g *glossary) faults() Findings {
	var faults Findings
	if !fullHash.MatchString(g.Since) {
		faults = append(faults, fmt.Sprintf("%s: since is %q, must be the full hash of a commit", glossaryFile, g.Since))
	}
	seen := map[string]bool{}
	for _, t := range g.Terms {
		add := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("%s: term %q: ", glossaryFile, t.Name)+fmt.Sprintf(format, args...))
		}
		if seen[t.Name] {
			add("is listed twice")
		}
		seen[t.Name] = true
		for field, missing := range map[string]bool{
			"term": t.Name == "", "patterns": len(t.Patterns) == 0, "write": t.Write == "", "finds": len(t.Finds) == 0, "accepts": len(t.Accepts) == 0,
		} {
			if missing {
				add("has no %s", field)
			}
		}
		if t.In != "" && t.In != inText {
			add("has the scope %q; the only scope is %q", t.In, inText)
		}
		t.exampleFaults(add)
		for _, a := range t.Allow {
			if a.Path == "" || a.Why == "" {
				add("an entry of its allow list needs a path and a reason: path %q, why %q", a.Path, a.Why)
			}
			if _, err := path.Match(a.Path, ""); err != nil {
				add("path %q: %v", a.Path, err)
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// exampleFaults reports each example that does not have the wanted result, and each pattern that no example shows.
func (t *term) exampleFaults(add func(format string, args ...any)) {
	shown := map[*pattern]bool{}
	for _, text := range t.Finds {
		found := t.matches(text)
		if len(found) == 0 {
			add("does not find %q", text)
		}
		for _, p := range found {
			shown[p] = true
		}
	}
	for _, text := range t.Accepts {
		for _, p := range t.matches(text) {
			add("pattern %q must accept %q", p.source, text)
		}
	}
	for _, p := range t.compiled {
		if !shown[p] {
			add("no example under finds has pattern %q", p.source)
		}
	}
}

func (t *term) matches(text string) []*pattern {
	x := index{}
	x.add(t.compiled...)
	var found []*pattern
	normalize([]byte(text)).search(x, func(p *pattern, _, _ int) { found = append(found, p) })
	return found
}

// unused returns the allowances that no call of find has used.
func (g *glossary) unused() Findings {
	var faults Findings
	for _, t := range g.Terms {
		for _, a := range t.Allow {
			if !a.used {
				faults = append(faults, fmt.Sprintf("%s: term %q: nothing in %s needs the allow entry (line %q) any more; delete it",
					glossaryFile, t.Name, a.Path, a.Line))
			}
		}
	}
	return faults
}

// find returns the occurrences of the terms in a Go, Markdown or YAML file, without those that are allowed.
func (g *glossary) find(name string, data []byte, lines []string) []hit {
	if name == glossaryFile || !slices.Contains([]string{".go", ".md", ".yaml", ".yml"}, path.Ext(name)) {
		return nil
	}
	var hits []hit
	search := func(n normalized, x index) {
		n.search(x, func(p *pattern, start, end int) {
			if line := n.line(start); !p.term.allows(name, lines[line]) {
				hits = append(hits, hit{file: name, line: line + 1, text: string(n.text[start:end]), term: p.term.Name, write: p.term.Write})
			}
		})
	}
	all := normalize(data)
	search(all, g.everywhere)
	if path.Ext(name) == ".go" {
		search(normalize(textOf(data)), g.text)
	} else {
		search(all, g.text)
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(a.line-b.line, strings.Compare(a.text, b.text)) })
	return slices.Compact(hits)
}

func (t *term) allows(file, line string) bool {
	allowed := false
	for _, a := range t.Allow {
		if a.matches(file) && a.line.MatchString(line) {
			a.used, allowed = true, true
		}
	}
	return allowed
}

func (a *allowance) matches(file string) bool {
	if folder, below := strings.CutSuffix(a.Path, "/..."); below {
		return strings.HasPrefix(file, folder+"/")
	}
	matched, _ := path.Match(a.Path, file)
	return matched
}

// normalized is a text in lower case in which identifiers are split into words, and white space, line breaks and
// marks of comments are one space. An empty line is a line break, because no phrase continues after it.
type normalized struct {
	text   []byte
	starts []int
}

func normalize(data []byte) normalized {
	n := normalized{text: make([]byte, 0, len(data)+len(data)/8), starts: []int{0}}
	space := func() {
		if len(n.text) > 0 && n.text[len(n.text)-1] != ' ' && n.text[len(n.text)-1] != '\n' {
			n.text = append(n.text, ' ')
		}
	}
	atStart, empty := true, true
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case c == '\n':
			if empty {
				n.text = append(n.text, '\n')
			} else {
				space()
			}
			n.starts = append(n.starts, len(n.text))
			atStart, empty = true, true
			continue
		case c == '\\' && i+1 < len(data) && (data[i+1] == 'n' || data[i+1] == 't'): // white space in a string
			i++
			c = ' '
		case c == '_':
			c = ' '
		case isUpper(c):
			if i > 0 && (isWord(data[i-1]) || isUpper(data[i-1]) && i+1 < len(data) && isLower(data[i+1])) {
				space()
			}
			c += 'a' - 'A'
		}
		if c == ' ' || c == '\t' || c == '\r' || atStart && bytes.IndexByte(commentMarks, c) >= 0 {
			space()
			continue
		}
		atStart, empty = false, false
		n.text = append(n.text, c)
	}
	return n
}

func (n normalized) line(offset int) int {
	line, exact := slices.BinarySearch(n.starts, offset)
	if !exact {
		line--
	}
	return line
}

// search calls found for each match of the patterns, which begins and ends with a word.
func (n normalized) search(x index, found func(p *pattern, start, end int)) {
	for i := 0; i+minPrefix <= len(n.text); i++ {
		if !isWord(n.text[i]) || i > 0 && isWord(n.text[i-1]) {
			continue
		}
		rest := n.text[i:min(i+maxPhrase, len(n.text))]
		for _, p := range x[[minPrefix]byte(rest)] {
			if !bytes.HasPrefix(rest, p.prefix) {
				continue
			}
			if at := p.regexp.FindIndex(rest); at != nil {
				found(p, i, i+at[1])
			}
		}
	}
}

// textOf returns a Go file with blanks in place of everything but comments, strings and line breaks.
func textOf(data []byte) []byte {
	result := bytes.Repeat([]byte(" "), len(data))
	for i, c := range data {
		if c == '\n' {
			result[i] = c
		}
	}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(data))
	var s scanner.Scanner
	s.Init(file, data, nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return result
		}
		if kind == token.COMMENT || kind == token.STRING {
			copy(result[file.Offset(at):], literal)
		}
	}
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isWord(c byte) bool { return isLower(c) || c >= '0' && c <= '9' }

func summarize(hits []hit) string {
	counts := map[string]int{}
	for _, h := range hits {
		counts[h.term]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}
