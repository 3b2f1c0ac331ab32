// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// checkDocs checks the links of all documents and that something runs each of their commands, and compares the READMEs
// of modules and the page of all reasons with the constants in the code.
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

	out, err := r.Command(ctx, ".", "go", "run", "./e2e/cmd/sno-guides", "-check").Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(out) == 0 {
		return fmt.Errorf("check the commands of the documents: %w: %s", err, exit.Stderr)
	} else if err != nil && exit == nil {
		return err
	}
	faults = append(faults, lines(out)...)

	shared, err := os.ReadFile(r.Path("patch/result.go"))
	if err != nil {
		return err
	}
	constants := map[string]string{}
	for _, m := range r.Modules {
		if !hasController(r.Workspace, m) {
			continue
		}
		own, err := os.ReadFile(r.Path(m.Dir + "/names.go"))
		if err != nil {
			return err
		}
		constants[m.Dir] = string(own)
	}
	return append(faults, reasonFaults(pages, constants, string(shared))...).orNil()
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

const reasonsFile = "docs/troubleshooting.md"

var (
	// reasonConstant matches a constant with a reason; one that is a shared constant has a name that ends with its value.
	reasonConstant = regexp.MustCompile(`(?m)^\tReason\w+ += (?:"(\w+)"|patch\.Reason(\w+))(?: +//.*)?$`)
	// reasonRow matches a row of a table of reasons, and in reasonsFile the modules that have them.
	reasonRow  = regexp.MustCompile("(?m)^\\| (`\\w+`(?:, `\\w+`)*) \\|([^|]*)\\|")
	inBacktick = regexp.MustCompile("`(\\w+)`")
)

// readmeHeadings are the level-2 headings of the README of a module with a controller.
const readmeHeadings = "What it does for you, What it changes, Run it, Undo it, Vendor it, Conditions and reasons, Metrics, Flags, Known limits"

func reasonsIn(source string) (reasons []string) {
	for _, match := range reasonConstant.FindAllStringSubmatch(source, -1) {
		reasons = append(reasons, match[1]+match[2])
	}
	return reasons
}

// reasonFaults compares the README of each module with its headings and constants, and reasonsFile with all READMEs.
func reasonFaults(pages, constants map[string]string, shared string) (faults findings) {
	known := reasonsIn(shared)
	has := map[string]bool{} // module and reason
	for dir, source := range constants {
		name := dir + "/README.md"
		var headings []string
		for line := range strings.Lines(pages[name]) {
			if title, is := strings.CutPrefix(line, "## "); is {
				headings = append(headings, strings.TrimSpace(title))
			}
		}
		if got := strings.Join(headings, ", "); got != readmeHeadings {
			faults = append(faults, fmt.Sprintf("%s: has the headings %s; all modules with a controller have %s", name, got, readmeHeadings))
		}
		_, table, _ := strings.Cut(pages[name], "\n| reason | in force |")
		table, _, _ = strings.Cut(table, "\n\n")
		var rest []string
		own := reasonsIn(source)
		for _, row := range reasonRow.FindAllStringSubmatch(table, -1) {
			for _, match := range inBacktick.FindAllStringSubmatch(row[1], -1) {
				has[dir+" "+match[1]] = true
				if slices.Contains(own, match[1]) || !slices.Contains(known, match[1]) {
					rest = append(rest, match[1])
				}
			}
		}
		if !slices.Equal(rest, own) {
			faults = append(faults, fmt.Sprintf("%s: has the reasons %v; names.go has %v", name, rest, own))
		}
		known = append(known, own...)
	}
	_, table, _ := strings.Cut(pages[reasonsFile], "<!-- reasons -->")
	table, _, _ = strings.Cut(table, "<!-- end of reasons -->")
	var explained []string
	for _, row := range reasonRow.FindAllStringSubmatch(table, -1) {
		modules := strings.TrimSpace(row[2])
		list, but := strings.CutPrefix(modules, "all but ")
		for _, match := range inBacktick.FindAllStringSubmatch(row[1], -1) {
			explained = append(explained, match[1])
			for dir := range constants {
				if want := modules == "all" || slices.Contains(strings.Split(list, ", "), dir) != but; has[dir+" "+match[1]] != want {
					faults = append(faults, fmt.Sprintf("%s: has %s for the modules %q; %s/README.md has it: %t", reasonsFile, match[1], modules, dir, !want))
				}
			}
		}
	}
	slices.Sort(known)
	slices.Sort(explained)
	if known = slices.Compact(known); !slices.Equal(explained, known) {
		faults = append(faults, fmt.Sprintf("%s: explains the reasons %v; the code has %v", reasonsFile, explained, known))
	}
	slices.Sort(faults)
	return faults
}
