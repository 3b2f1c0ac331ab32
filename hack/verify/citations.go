// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// The documents with numbered entries.
const (
	requirementsFile = "docs/requirements.md"
	upstreamFile     = "docs/upstream.md"
)

// Marks of a requirement that does not need both code and a test.
const (
	markPlanned       = "planned"
	markTests         = "tests"
	markDocumentation = "documentation"
)

// example is the topic of arbitrary numbers in test data.
const example = "-EXAMPLE-"

// former is the former name of requirements. It is concatenated, so that this file does not contain it.
const former = "se" + "ed"

var (
	// entryLine matches the first line of an entry: anchor, number, link to its row of the table, mark.
	entryLine = regexp.MustCompile(`^[-*] (?:<a id="([^"]*)"></a>)?\[?\*\*([RU]-[A-Z]+-[1-9][0-9]*)\*\*(?:\]\(#([^)]*)\))?(?: \(([^)]*)\))?`)
	// numberInText matches a citation, also of a number that no entry can have (with a leading zero), so that it is
	// reported.
	numberInText = regexp.MustCompile(`(?:^|[^\w-])([RU]-[A-Z]+-[0-9]+)\b`)
	formerName   = regexp.MustCompile(`(?i)(random[ _-]?)?` + former)
	formerFolder = regexp.MustCompile(`\bfacts[/]`)
)

// exemption is a text that may stay in a file although it contains a former name.
type exemption struct{ file, text, why string }

var exemptions = []exemption{
	{"cli/decide.go", `const formerPolicy = "` + former + `"`, "the policy's former name is accepted for one release"},
	{"cli/verbs_test.go", `"--policy", "` + former + `"`, "the policy's former name is accepted for one release"},
}

type source struct {
	name  string
	lines []string
}

type numbered struct {
	number, anchor, link, mark string
	file                       string
	line                       int
}

type citationKind int

const (
	// otherCitation proves only that the entry is in use.
	otherCitation citationKind = iota
	codeCitation
	testCitation
	pageCitation
)

// citation is a line that cites a number.
type citation struct {
	number, file string
	line         int
	kind         citationKind
}

type evidence struct {
	entries   []numbered
	citations map[string][]citation
}

type lineFault struct {
	file string
	line int
	text string
}

// checkCitations compares the numbered entries with their citations. A repository without requirements passes.
func checkCitations(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	faults, err := citationFaults(ctx, ws, exemptions)
	if err != nil {
		return err
	}
	return faults.errorOrNil()
}

func citationFaults(ctx context.Context, ws *workspace.Workspace, exempt []exemption) (Findings, error) {
	if _, err := os.Stat(ws.Path(requirementsFile)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	sources, err := readSources(ctx, ws)
	if err != nil {
		return nil, err
	}
	found := readEvidence(sources)
	all := slices.DeleteFunc(formerNames(sources, exempt), func(f lineFault) bool { return !ws.InFocus(f.file) })
	all = append(all, found.faults()...)
	all = append(all, tableFaults(sources, found)...)
	slices.SortStableFunc(all, func(a, b lineFault) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	var faults Findings
	for _, f := range all {
		faults = append(faults, fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text))
	}
	return faults, nil
}

// readSources reads the files that can cite: Go, YAML and Markdown.
func readSources(ctx context.Context, ws *workspace.Workspace) ([]source, error) {
	files, err := ws.Files(ctx)
	if err != nil {
		return nil, err
	}
	var sources []source
	for _, name := range files {
		if !slices.Contains([]string{".go", ".yaml", ".yml", ".md"}, path.Ext(name)) {
			continue
		}
		lines, err := textLines(ws, name)
		if err != nil {
			return nil, err
		}
		if lines != nil {
			sources = append(sources, source{name, lines})
		}
	}
	return sources, nil
}

// readEvidence skips the generated table, which cites every requirement.
func readEvidence(sources []source) evidence {
	found := evidence{citations: map[string][]citation{}}
	for _, s := range sources {
		for i, line := range s.outsideTable() {
			if match := entryLine.FindStringSubmatch(line); match != nil && (s.name == requirementsFile || s.name == upstreamFile) {
				found.entries = append(found.entries, numbered{number: match[2], anchor: match[1], link: match[3], mark: match[4], file: s.name, line: i + 1})
			}
			for _, match := range numberInText.FindAllStringSubmatch(line, -1) {
				if strings.Contains(match[1], example) {
					continue
				}
				cited := citation{match[1], s.name, i + 1, kindOf(s.name)}
				if !slices.Contains(found.citations[cited.number], cited) {
					found.citations[cited.number] = append(found.citations[cited.number], cited)
				}
			}
		}
	}
	return found
}

// kindOf returns what a citation in a file proves. Mutants do not count as tests: their tests do. Nor does the
// comment of a package count as code, or the stand-ins of testcluster, which are part of tests.
func kindOf(name string) citationKind {
	inTestdata := strings.Contains("/"+name, "/testdata/")
	switch {
	case path.Base(name) == "mutants.yaml", path.Base(name) == "doc.go" && !inTestdata && !isSuite(name):
		return otherCitation
	case inTestdata, strings.HasSuffix(name, "_test.go"):
		return testCitation
	case path.Ext(name) == ".md":
		return pageCitation
	case isSuite(name):
		return testCitation
	case path.Ext(name) == ".go" && !strings.HasPrefix(name, "hack/"):
		return codeCitation
	default:
		return otherCitation
	}
}

// isSuite reports whether the module of a file only serves tests.
func isSuite(name string) bool {
	module, _, _ := strings.Cut(name, "/")
	return module == "e2e" || module == "conformance" || module == "testcluster"
}

func (e evidence) of(number string, kind citationKind) []citation {
	var of []citation
	for _, c := range e.citations[number] {
		if c.kind == kind && c.file != requirementsFile && c.file != upstreamFile {
			of = append(of, c)
		}
	}
	return of
}

func (e evidence) faults() []lineFault {
	var faults []lineFault
	first := map[string]numbered{}
	for _, entry := range e.entries {
		add := func(format string, args ...any) {
			faults = append(faults, lineFault{entry.file, entry.line, entry.number + ": " + fmt.Sprintf(format, args...)})
		}
		if before, doubled := first[entry.number]; doubled {
			add("is an entry already at %s:%d", before.file, before.line)
			continue
		}
		first[entry.number] = entry
		if want := strings.ToLower(entry.number); entry.anchor != want {
			add("its anchor is %q, must be %q", entry.anchor, want)
		}
		if want := documentOf(entry.number); entry.file != want {
			add("belongs into %s", want)
		} else if want := rowOf(entry.number); entry.file == requirementsFile && entry.link != want {
			add("its link is %q, must be %q", "#"+entry.link, "#"+want)
		}
		if fault := e.lack(entry); fault != "" {
			add("%s", fault)
		}
		if entry.mark == markPlanned {
			for _, c := range e.of(entry.number, codeCitation) {
				faults = append(faults, lineFault{c.file, c.line, fmt.Sprintf(
					"cites %s, which is planned at %s:%d; remove the mark or the citation", c.number, entry.file, entry.line)})
			}
		}
	}
	for number, citations := range e.citations {
		if _, known := first[number]; known {
			continue
		}
		for _, c := range citations {
			faults = append(faults, lineFault{c.file, c.line, "cites " + number + ", which has no entry in " + documentOf(number)})
		}
	}
	slices.SortFunc(faults, func(a, b lineFault) int { return strings.Compare(a.text, b.text) })
	return faults
}

func documentOf(number string) string {
	if strings.HasPrefix(number, "R-") {
		return requirementsFile
	}
	return upstreamFile
}

func (e evidence) lack(entry numbered) string {
	if strings.HasPrefix(entry.number, "U-") {
		outside := func(c citation) bool { return c.file != entry.file }
		switch {
		case entry.mark != "":
			return fmt.Sprintf("has the mark %q; only requirements have marks", entry.mark)
		case !slices.ContainsFunc(e.citations[entry.number], outside):
			return "nothing outside of " + entry.file + " cites it"
		}
		return ""
	}
	code, tests := len(e.of(entry.number, codeCitation)) > 0, len(e.of(entry.number, testCitation)) > 0
	marks := fmt.Sprintf("; an entry that needs less has the mark (%s), (%s) or (%s)", markPlanned, markTests, markDocumentation)
	switch entry.mark {
	case markPlanned:
	case markTests:
		if !tests {
			return "no test cites it"
		}
	case markDocumentation:
		if len(e.of(entry.number, pageCitation)) == 0 {
			return "no page cites it other than " + requirementsFile + " and " + upstreamFile
		}
	case "":
		switch {
		case !code && !tests:
			return "neither code nor a test cites it" + marks
		case !code:
			return "no code cites it" + marks
		case !tests:
			return "no test cites it" + marks
		}
	default:
		return fmt.Sprintf("has the mark %q; the marks are %s, %s and %s", entry.mark, markPlanned, markTests, markDocumentation)
	}
	return ""
}

// formerNames finds former names of requirements and facts, and unused exemptions.
func formerNames(sources []source, exempt []exemption) []lineFault {
	var faults []lineFault
	needed := map[exemption]bool{}
	for _, s := range sources {
		for i, line := range s.outsideTable() {
			for _, e := range exempt {
				if e.file == s.name && strings.Contains(line, e.text) {
					needed[e] = true
					line = strings.ReplaceAll(line, e.text, "")
				}
			}
			if name := formerNameIn(line); name != "" {
				faults = append(faults, lineFault{s.name, i + 1, fmt.Sprintf("%q: cite the number in %s or %s; what starts a random sequence is a random %s",
					name, requirementsFile, upstreamFile, former)})
			}
		}
	}
	for _, e := range exempt {
		if !needed[e] {
			faults = append(faults, lineFault{e.file, 1, fmt.Sprintf("no line has the text %s any more (%s); remove it from the exemptions of the step citations", e.text, e.why)})
		}
	}
	return faults
}

// formerNameIn returns the first of them in a line. Random numbers are none, nor is the Makefile's variable in
// capitals.
func formerNameIn(line string) string {
	for _, match := range formerName.FindAllStringSubmatch(line, -1) {
		if match[1] == "" && match[0] != strings.ToUpper(former) {
			return match[0]
		}
	}
	return formerFolder.FindString(line)
}
