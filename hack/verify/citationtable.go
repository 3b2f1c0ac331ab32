// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/solonode/sno/hack/workspace"
)

// The generated table is between these lines at the end of requirementsFile.
const (
	citationsBegin = "<!-- citations -->"
	citationsEnd   = "<!-- end of citations -->"
)

// checksFile lists the conformance checks, a row each, with their requirements.
const checksFile = "docs/conformance.md"

var checkRow = regexp.MustCompile(`^\| *(?:<a id="([^"]+)"></a>)?(SNO-[A-Z]+-[0-9]+) *\|`)

func (s source) table() (begin, end int) {
	if s.name != requirementsFile {
		return 0, -1
	}
	begin, end = slices.Index(s.lines, citationsBegin), slices.Index(s.lines, citationsEnd)
	if begin < 0 || end < begin {
		return 0, -1
	}
	return begin, end
}

// outsideTable iterates over the lines that are not generated, with their indices.
func (s source) outsideTable() iter.Seq2[int, string] {
	begin, end := s.table()
	return func(yield func(int, string) bool) {
		for i, line := range s.lines {
			if (i < begin || end < i) && !yield(i, line) {
				return
			}
		}
	}
}

// tableFaults compares the generated table with a new one.
func tableFaults(sources []source, found evidence) []lineFault {
	old, written, err := withTable(sources, found)
	if err != nil {
		return []lineFault{{requirementsFile, max(1, len(old.lines)), err.Error()}}
	}
	if begin, _ := old.table(); strings.Join(old.lines, "\n") != written {
		return []lineFault{{requirementsFile, begin + 1, "the table does not match the citations; run make generate"}}
	}
	return nil
}

var errNoTable = errors.New("needs the lines " + citationsBegin + " and " + citationsEnd + " around its table")

// generateCitations writes the table into the document, if there is one.
func generateCitations(ctx context.Context, ws *workspace.Workspace) (bool, error) {
	if _, err := os.Stat(ws.Path(requirementsFile)); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	sources, err := readSources(ctx, ws)
	if err != nil {
		return false, err
	}
	_, written, err := withTable(sources, readEvidence(sources))
	if err != nil {
		return false, fmt.Errorf("%s: %w", requirementsFile, err)
	}
	return true, os.WriteFile(ws.Path(requirementsFile), []byte(written), 0o644)
}

// withTable returns the document of requirements, and its text with the new table.
func withTable(sources []source, found evidence) (document source, text string, err error) {
	if i := slices.IndexFunc(sources, func(s source) bool { return s.name == requirementsFile }); i >= 0 {
		document = sources[i]
	}
	begin, end := document.table()
	if end < begin {
		return document, "", errNoTable
	}
	lines := slices.Concat(document.lines[:begin+1], citationTable(found, checksOf(sources)), document.lines[end:])
	return document, strings.Join(lines, "\n"), nil
}

// checksOf returns links to the conformance checks of each requirement, in the order of their page.
func checksOf(sources []source) map[string][]string {
	checks := map[string][]string{}
	for _, s := range sources {
		if s.name != checksFile {
			continue
		}
		for _, line := range s.lines {
			row := checkRow.FindStringSubmatch(line)
			if row == nil {
				continue
			}
			check := row[2]
			if row[1] != "" {
				check = fmt.Sprintf("[%s](%s#%s)", row[2], path.Base(checksFile), row[1])
			}
			for _, match := range numberInText.FindAllStringSubmatch(line, -1) {
				if !slices.Contains(checks[match[1]], check) {
					checks[match[1]] = append(checks[match[1]], check)
				}
			}
		}
	}
	return checks
}

// citationTable returns the lines of the table: the totals, then a row for each requirement.
func citationTable(found evidence, checks map[string][]string) []string {
	var rows []string
	whole, marks := 0, map[string]int{}
	for _, entry := range found.entries {
		if entry.file != requirementsFile {
			continue
		}
		code, tests := links(found.of(entry.number, codeCitation)), links(found.of(entry.number, testCitation))
		if entry.mark == "" && len(code) > 0 && len(tests) > 0 {
			whole++
		}
		marks[entry.mark]++
		if entry.mark == markDocumentation {
			code = append(links(found.of(entry.number, pageCitation)), code...)
		}
		if entry.mark != "" {
			code = append([]string{entry.mark}, code...)
		}
		rows = append(rows, fmt.Sprintf("| <a id=%q></a>[%s](#%s) | %s | %s | %s |", rowOf(entry.number), entry.number, strings.ToLower(entry.number),
			strings.Join(code, "<br>"), strings.Join(tests, "<br>"), strings.Join(checks[entry.number], "<br>")))
	}
	return append([]string{
		fmt.Sprintf("Of %d requirements %d have code and a test, %d are planned, %d ask for tests only and %d for documentation.",
			len(rows), whole, marks[markPlanned], marks[markTests], marks[markDocumentation]),
		"",
		"| Requirement | Code | Tests | Conformance checks |",
		"|---|---|---|---|",
	}, rows...)
}

// rowOf returns the anchor of a requirement's row, to which its entry links.
func rowOf(number string) string { return strings.ToLower(number) + "-done" }

func links(citations []citation) []string {
	var all []string
	for _, c := range citations {
		target, sameFolder := strings.CutPrefix(c.file, path.Dir(requirementsFile)+"/")
		if !sameFolder {
			target = "../" + c.file
		}
		link := fmt.Sprintf("[%s](%s)", c.file, target)
		if !slices.Contains(all, link) {
			all = append(all, link)
		}
	}
	return all
}
