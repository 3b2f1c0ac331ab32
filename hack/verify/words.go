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

	"github.com/solonode/sno/hack/versions"
	"github.com/solonode/sno/hack/workspace"
)

// word is something that must not be in a tracked file.
type word struct {
	pattern *regexp.Regexp
	// hints are texts of which every match contains one. Searching for them first is what makes the step fast.
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
		pattern: regexp.MustCompile(`\b(proxy\.golang\.org|sum\.golang\.org|goproxy\.(io|cn)|registry\.npmjs\.org|pypi\.org|files\.pythonhosted\.org|crates\.io|rubygems\.org|(deb|security)\.debian\.org|dl\.k8s\.io)\b`),
		hints:   []string{"golang.org", "goproxy", "npmjs", "pypi", "pythonhosted", "crates", "rubygems", "debian", "dl.k8s"},
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

func checkVersions(_ context.Context, ws *workspace.Workspace, _ io.Writer) error {
	file, err := versions.Read(ws.Path("hack/versions.yaml"))
	if err != nil {
		return err
	}
	return Faults(versions.Compare(file, ws)).errorOrNil()
}

func checkWords(ctx context.Context, ws *workspace.Workspace, _ io.Writer) error {
	files, err := ws.Files(ctx)
	if err != nil {
		return err
	}
	var faults Faults
	for _, name := range files {
		if !ws.InFocus(name) {
			continue
		}
		lines, err := textLines(ws, name)
		if err != nil {
			return err
		}
		faults = append(faults, findWords(name, lines)...)
	}
	return faults.errorOrNil()
}

// textLines returns the lines of a text file; nil for a binary file and for what is no regular file, such as a link.
func textLines(ws *workspace.Workspace, name string) ([]string, error) {
	info, err := os.Lstat(ws.Path(name))
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	data, err := os.ReadFile(ws.Path(name))
	if err != nil {
		return nil, err
	}
	return splitText(data), nil
}

func splitText(data []byte) []string {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// findWords returns one line per forbidden word in the lines of a file.
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
