// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// noCommands are the languages of blocks that nobody types into a shell.
var noCommands = []string{"diff", "go", "ini", "json", "makefile", "mermaid", "text", "yaml"}

// Faults returns what is wrong with the markers and the blocks of a document. It is called once. Every block of
// commands must be run on the document's cluster, or by one of the make targets, or have a reason why nothing runs it.
func (d *Document) Faults(targets map[string]bool) []string {
	for _, b := range d.Blocks {
		target, _, _ := strings.Cut(b.RunBy, " ")
		isCommands := b.Language == console || b.Language == shell
		switch {
		case slices.Contains(noCommands, b.Language):
			if b.RunBy != "" || b.NotRun != "" {
				d.fault(b.Line, "a marker for a block of %s, which has no commands", b.Language)
			}
		case !isCommands:
			d.fault(b.Line, "the language is %q: it must be console or sh for commands, else one of %s", b.Language, strings.Join(noCommands, ", "))
		case b.Language == console && (len(b.Lines) == 0 || !strings.HasPrefix(b.Lines[0], prompt)):
			d.fault(b.Line, `a console block must begin with a command, which begins with "$ "`)
		case b.RunBy != "" && !targets[target]:
			d.fault(b.Line, "neither .ci/run nor make nightly nor make weekly runs the target %q", target)
		case b.RunBy != "" || b.NotRun != "":
		case d.Cluster == nil || b.Line < d.ClusterLine:
			d.fault(b.Line, "no test runs these commands: before them must be a marker for a cluster, or one with run by or not run")
		}
	}
	if d.Cluster != nil && len(d.Commands()) == 0 {
		d.fault(d.ClusterLine, "a marker for a cluster in a document without commands that are run on it")
	}
	return d.faults
}

var (
	rule      = regexp.MustCompile(`(?m)^([a-z0-9][a-z0-9 /%-]*):([^=\n]*)((?:\n\t[^\n]*)*)`)
	recursive = regexp.MustCompile(`\$\(MAKE\)[^\n]*`)
	word      = regexp.MustCompile(`[^\s"'()]+`)
)

// Targets returns the make targets that something runs regularly: those named in .ci/run, nightly and weekly, and what
// they depend on or make in their recipes.
func Targets(makefile, ci string) map[string]bool {
	needs := map[string][]string{}
	for _, match := range rule.FindAllStringSubmatch(makefile, -1) {
		prerequisites, _, _ := strings.Cut(match[2], "#")
		made := strings.Fields(prerequisites)
		for _, recipe := range recursive.FindAllString(match[3], -1) {
			made = append(made, word.FindAllString(recipe, -1)...)
		}
		for _, target := range strings.Fields(match[1]) {
			needs[target] = append(needs[target], made...)
		}
	}
	found := map[string]bool{}
	var add func(string)
	add = func(target string) {
		if _, is := needs[target]; is && !found[target] {
			found[target] = true
			for _, other := range needs[target] {
				add(other)
			}
		}
	}
	add("nightly")
	add("weekly")
	for line := range strings.Lines(ci) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, target := range word.FindAllString(line, -1) {
			add(target)
		}
	}
	return found
}

// Check returns what is wrong with the markers and blocks of all documents below root.
func Check(root string) ([]string, error) {
	documents, err := Documents(root)
	if err != nil {
		return nil, err
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, fmt.Errorf("read the targets of make: %w", err)
	}
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		return nil, fmt.Errorf("read what CI runs: %w", err)
	}
	known := Targets(string(makefile), string(ci))
	var faults []string
	for _, d := range documents {
		faults = append(faults, d.Faults(known)...)
	}
	return faults, nil
}
