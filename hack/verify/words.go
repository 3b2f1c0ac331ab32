// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/solonode/sno/hack/changelog"
	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

type word struct {
	pattern *regexp.Regexp
	// hints are texts of which every match contains one. Searching for them first makes the step fast.
	hints []string
	// files limits the rule to names with one of these endings; none means every text file.
	files []string
	why   string
}

// The patterns escape their own text, so that this file does not match itself.
var words = []word{
	{
		pattern: regexp.MustCompile("(^|[\\s\"'`=(:,\\[])/((work|root|home/[a-z]+|Users/[A-Za-z]+)(/|\\b)|tmp/)"),
		hints:   []string{"work", "root", "home/", "Users/", "tmp/"},
		why:     "a path of one machine; use a relative path, a flag or a temporary folder of the test",
	},
	{
		pattern: regexp.MustCompile(`\b(proxy\.golang\.org|sum\.golang\.org|goproxy\.(io|cn)|registry\.npmjs\.org|pypi\.org|files\.pythonhosted\.org|crates\.io|rubygems\.org|(deb|security)\.debian\.org)\b`),
		hints:   []string{"golang.org", "goproxy", "npmjs", "pypi", "pythonhosted", "crates", "rubygems", "debian"},
		why:     "the host of a package registry; every machine has its own configured",
	},
	{
		pattern: regexp.MustCompile(`\btime\.Sleep\(`),
		hints:   []string{"time.Sleep"},
		files:   []string{".go"},
		why:     "a sleep; wait for the condition instead",
	},
	{
		pattern: regexp.MustCompile(`(//|#|<!--)\s*(TODO|FIXME)\b|\b(TODO|FIXME)[:(]`),
		hints:   []string{"TODO", "FIXME"},
		files:   []string{".go", ".sh", ".yaml", ".md", "Makefile"},
		why:     "a leftover; do it or write an issue",
	},
}

func checkVersions(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	file, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	faults := Findings(versions.Compare(file, ws))
	files, err := ws.Files(ctx)
	if err != nil {
		return err
	}
	for _, name := range files {
		if path.Ext(name) != ".md" || name == changelog.File || strings.Contains(name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(ws.Path(name))
		if err != nil {
			return err
		}
		faults = append(faults, versions.CompareDocument(file, name, string(text))...)
	}
	return faults.errorOrNil()
}

const maxHits = 50

// listing is the error of a step that may have more findings than fit on a screen.
type listing struct {
	faults Findings
	// hits are printed after the faults, limited by maxHits unless all are requested.
	hits    Findings
	summary string
}

func (l *listing) Error() string { return l.text(maxHits) }

func (l *listing) all() string { return l.text(len(l.hits)) }

func (l *listing) text(most int) string {
	lines := slices.Clone(l.faults)
	lines = append(lines, l.hits[:min(most, len(l.hits))]...)
	if more := len(l.hits) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more; the flag -all prints them", more))
	}
	if len(l.hits) > 0 {
		lines = append(lines, l.summary)
	}
	return lines.Error()
}

// checkWords checks the files in focus, and the glossary and commit subjects if hack is in focus.
func checkWords(ctx context.Context, ws *workspace.Workspace, w io.Writer) error {
	terms, err := readGlossary(ws)
	if err != nil {
		return err
	}
	files, err := ws.Files(ctx)
	if err != nil {
		return err
	}
	var found listing
	var hits []hit
	for _, name := range files {
		if !ws.InFocus(name) {
			continue
		}
		data, err := regularFile(ws, name)
		if err != nil {
			return err
		}
		lines := splitText(data)
		found.faults = append(found.faults, findWords(name, lines)...)
		found.faults = append(found.faults, longComments(name, lines)...)
		found.faults = append(found.faults, missingLicense(name, lines)...)
		if lines != nil {
			hits = append(hits, terms.find(name, data, lines)...)
		}
	}
	if ws.InFocus(glossaryFile) {
		subjects, err := checkSubjects(ctx, ws, terms, topFolders(files), w)
		if err != nil {
			return err
		}
		found.faults = slices.Concat(found.faults, terms.faults(), subjects)
	}
	if ws.InFocus(".") {
		found.faults = append(found.faults, terms.unused()...)
	}
	for _, h := range hits {
		found.hits = append(found.hits, h.String())
	}
	found.summary = fmt.Sprintf("%d in all: %s", len(hits), summarize(hits))
	if len(found.faults)+len(found.hits) == 0 {
		return nil
	}
	return &found
}

// textLines returns the lines of a text file; nil for binary and irregular files, such as links.
func textLines(ws *workspace.Workspace, name string) ([]string, error) {
	data, err := regularFile(ws, name)
	if err != nil || data == nil {
		return nil, err
	}
	return splitText(data), nil
}

// regularFile returns the content of a file; nil for irregular files, such as links.
func regularFile(ws *workspace.Workspace, name string) ([]byte, error) {
	info, err := os.Lstat(ws.Path(name))
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	return os.ReadFile(ws.Path(name))
}

func splitText(data []byte) []string {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil
	}
	return strings.Split(string(data), "\n")
}

func findWords(name string, lines []string) []string {
	var faults []string
	for i, line := range lines {
		for _, word := range words {
			if !word.mayMatch(line) || !word.appliesTo(name) {
				continue
			}
			if match := word.pattern.FindString(line); match != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %q: %s", name, i+1, strings.TrimSpace(match), word.why))
			}
		}
	}
	return faults
}

const maxComment = 120

// longComments returns a finding for each line of a Go comment with more than maxComment characters. Code in comments,
// markers and the expected output of examples keep their lines.
func longComments(name string, lines []string) []string {
	if path.Ext(name) != ".go" {
		return nil
	}
	var faults []string
	output := false
	for i, line := range lines {
		text, comment := strings.CutPrefix(strings.TrimLeft(line, "\t"), "// ")
		output = comment && (output || strings.HasSuffix(text, "utput:"))
		if !comment || output || strings.HasPrefix(text, "+") {
			continue
		}
		if length := utf8.RuneCountInString(line); length > maxComment {
			faults = append(faults, fmt.Sprintf("%s:%d: a comment of %d characters; at most %d fit on a line", name, i+1, length, maxComment))
		}
	}
	return faults
}

const license = "// SPDX-License-Identifier: Apache-2.0"

// missingLicense returns a finding if a Go file does not begin with the license's identifier.
func missingLicense(name string, lines []string) []string {
	if path.Ext(name) != ".go" || len(lines) > 1 && lines[0] == license && lines[1] == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s: the first line must be %q, and the second one empty", name, license)}
}

func (w word) mayMatch(line string) bool {
	return slices.ContainsFunc(w.hints, func(hint string) bool { return strings.Contains(line, hint) })
}

func (w word) appliesTo(name string) bool {
	if len(w.files) == 0 {
		return true
	}
	for _, ending := range w.files {
		if strings.HasSuffix(path.Base(name), ending) {
			return true
		}
	}
	return false
}
