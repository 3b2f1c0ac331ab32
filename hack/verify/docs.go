// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// link matches the target of a Markdown link to another file of the repository, or to a heading.
	link         = regexp.MustCompile(`\]\(([^)\s:]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchorInText = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// checkDocs checks the links of all documents and that something runs each of their commands, and that the READMEs
// of modules and the page of all reasons have the reasons in the code.
func checkDocs(ctx context.Context, r repo) error {
	names, err := r.Files(ctx)
	if err != nil {
		return err
	}
	pages := map[string]string{}
	for _, name := range names {
		if path.Ext(name) == ".md" && !strings.Contains(name, "/testdata/") {
			text, err := os.ReadFile(r.Path(name))
			if err != nil {
				return err
			}
			pages[name] = string(text)
		}
	}
	faults := linkFaults(pages, func(name string) bool { _, err := os.Stat(r.Path(name)); return err == nil })

	// Go's cache of results does not know the files outside of e2e.
	if err := r.run(ctx, ".", "go", "test", "-vet=off", "-count=1", "-run=^TestDocuments$", "./e2e/guides"); err != nil {
		faults = append(faults, err.Error())
	}
	for _, m := range r.Modules {
		if slices.Equal(allowed[m.Dir], operators) {
			source, err := os.ReadFile(r.Path(m.Dir + "/decision/names.go"))
			if err != nil {
				return err
			}
			faults = append(faults, reasonFaults(pages, m.Dir, string(source))...)
		}
	}
	return faults.orNil()
}

func linkFaults(pages map[string]string, exists func(string) bool) (faults findings) {
	anchors := map[string]bool{}
	for name, text := range pages {
		for _, match := range heading.FindAllStringSubmatch(text, -1) {
			anchors[name+"#"+strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
		}
		for _, match := range anchorInText.FindAllStringSubmatch(text, -1) {
			anchors[name+"#"+match[1]] = true
		}
	}
	for name, text := range pages {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if !exists(file) || anchor != "" && !anchors[file+"#"+anchor] {
				faults = append(faults, fmt.Sprintf("%s: links to %s, which does not exist", name, match[1]))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// reasonsFile explains the reasons of all modules.
const reasonsFile = "docs/troubleshooting.md"

// reason matches a constant; one that is a shared constant has a name that ends with its value.
var reason = regexp.MustCompile(`(?m)^\tReason\w+ += (?:"|patch\.Reason)(\w+)`)

// reasonFaults compares the README of a module, and the page of all reasons, with the reasons in its decision/names.go.
func reasonFaults(pages map[string]string, dir, source string) (faults findings) {
	for _, match := range reason.FindAllStringSubmatch(source, -1) {
		for _, page := range []string{dir + "/README.md", reasonsFile} {
			if !strings.Contains(pages[page], "`"+match[1]+"`") {
				faults = append(faults, fmt.Sprintf("%s: lacks the reason %s of %s/decision/names.go", page, match[1], dir))
			}
		}
	}
	return faults
}
