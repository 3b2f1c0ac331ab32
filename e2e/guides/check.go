// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Languages of blocks.
const (
	console = "console"
	shell   = "sh"
)

// noCommands are the languages of blocks that nobody types into a shell.
var noCommands = []string{"diff", "go", "ini", "json", "makefile", "mermaid", "text", "yaml"}

// Faults returns what is wrong with the markers and the blocks of a document. Every block of commands must be run in
// the document's cluster, or by one of the make targets, or have a reason why nothing runs it.
func (d *Document) Faults(targets map[string]bool) []Fault {
	faults := slices.Clone(d.faults)
	fault := func(line int, text string) { faults = append(faults, Fault{d.Name, line, text}) }
	runs := 0
	for _, b := range d.Blocks {
		target, _, _ := strings.Cut(b.RunBy, " ")
		switch {
		case slices.Contains(noCommands, b.Language):
			if b.RunBy != "" || b.NotRun != "" {
				fault(b.Line, "a marker for a block of "+b.Language+", which has no commands")
			}
		case b.Language != console && b.Language != shell:
			fault(b.Line, "the language is "+strconv.Quote(b.Language)+": it must be console or sh for commands, else one of "+strings.Join(noCommands, ", "))
		case b.RunBy != "" && !targets[target]:
			fault(b.Line-1, "neither .ci/run nor make nightly nor make weekly runs the target "+strconv.Quote(target))
		case b.RunBy != "" || b.NotRun != "":
		case d.Cluster == nil:
			fault(b.Line, "no test runs these commands: the document needs a marker for a cluster, or the block one with run by or not run")
		case b.Line < d.Cluster.Line:
			fault(b.Line, "these commands come before the marker for the cluster")
		default:
			runs++
		}
		if b.Language == console && (len(b.Lines) == 0 || !strings.HasPrefix(b.Lines[0], prompt)) {
			fault(b.Line, `a console block must begin with a command, which begins with "$ "`)
		}
	}
	if d.Cluster != nil && runs == 0 {
		fault(d.Cluster.Line, "a marker for a cluster in a document without commands that are run on it")
	}
	slices.SortStableFunc(faults, func(a, b Fault) int { return a.Line - b.Line })
	return faults
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
		var made []string
		for _, recipe := range recursive.FindAllString(match[3], -1) {
			made = append(made, word.FindAllString(recipe, -1)...)
		}
		for _, target := range strings.Fields(match[1]) {
			needs[target] = append(append(needs[target], strings.Fields(prerequisites)...), made...)
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
