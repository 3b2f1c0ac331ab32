// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"regexp"
	"slices"
	"strings"
)

// replacements make the outputs of two runs equal, see the package's documentation.
var replacements = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	// Both are made of these characters only.
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}(-[bcdfghjklmnpqrstvwxz2456789]{5})?\b`), "-SUFFIX"},
	// Twice, because neighbours share a blank.
	{age, "${before}AGE${after}"},
	{age, "${before}AGE${after}"},
	{regexp.MustCompile(`(\S) {2,}`), "$1  "},
}

var age = regexp.MustCompile(`(?P<before>^|[ (])(\d+(\.\d+)?(ms|[dhmsy]))+(?P<after>$|[ ),;])`)

func normalise(line string) string {
	line = strings.TrimRight(line, " \t\r")
	for _, r := range replacements {
		line = r.pattern.ReplaceAllString(line, r.with)
	}
	return line
}

// step is one line of two outputs that are put side by side.
type step struct {
	kind byte // ' ' for a line in both, '-' for one that is only wanted, '+' for one that was only printed, '.' for a wanted "..."
	line string
}

// The costs of a line that is only in one of the outputs, or other in the other one, and of a line that "..." stands
// for: rather that than none.
const differs, absorbed = 1000, 1

// align puts the outputs side by side at the least cost. Lines in both are as they are in want.
func align(want, got []string) []step {
	// cost[i][j] is that of want[i:] and got[j:].
	cost := make([][]int, len(want)+1)
	for i := range cost {
		cost[i] = make([]int, len(got)+1)
	}
	same := func(i, j int) bool { return normalise(want[i]) == normalise(got[j]) }
	for i := len(want); i >= 0; i-- {
		for j := len(got); j >= 0; j-- {
			switch {
			case i == len(want):
				cost[i][j] = (len(got) - j) * differs
			case want[i] == anything:
				cost[i][j] = cost[i+1][j]
				if j < len(got) {
					cost[i][j] = min(cost[i][j], cost[i][j+1]+absorbed)
				}
			case j == len(got):
				cost[i][j] = cost[i+1][j] + differs
			case same(i, j):
				cost[i][j] = cost[i+1][j+1]
			default:
				cost[i][j] = min(cost[i+1][j], cost[i][j+1], cost[i+1][j+1]) + differs
			}
		}
	}
	var steps []step
	for i, j := 0, 0; i < len(want) || j < len(got); {
		both := i < len(want) && j < len(got)
		switch {
		case both && want[i] == anything && cost[i][j] == cost[i][j+1]+absorbed:
			j++
		case i < len(want) && want[i] == anything:
			steps = append(steps, step{'.', anything})
			i++
		case both && same(i, j):
			steps = append(steps, step{' ', want[i]})
			i, j = i+1, j+1
		case i < len(want) && (j == len(got) || cost[i][j] == cost[i+1][j]+differs):
			steps = append(steps, step{'-', want[i]})
			i++
		case i == len(want) || cost[i][j] == cost[i][j+1]+differs:
			steps = append(steps, step{'+', got[j]})
			j++
		default:
			steps = append(steps, step{'-', want[i]}, step{'+', got[j]})
			i, j = i+1, j+1
		}
	}
	return steps
}

// diff returns the lines of both outputs, those that are only wanted with a "-" and those that were only printed with a
// "+", or nothing if they are equal.
func diff(want, got []string) string {
	steps := align(want, got)
	if !slices.ContainsFunc(steps, func(s step) bool { return s.kind == '-' || s.kind == '+' }) {
		return ""
	}
	var b strings.Builder
	for _, s := range steps {
		kind := s.kind
		if kind == '.' {
			kind = ' '
		}
		b.WriteString(string(kind) + " " + s.line + "\n")
	}
	return b.String()
}

// update is the output to show from now on: the lines that are right stay, and so does what "..." stands for.
func update(want, got []string) []string {
	var lines []string
	for _, s := range align(want, got) {
		if s.kind != '-' {
			lines = append(lines, strings.TrimRight(s.line, " \t\r"))
		}
	}
	return lines
}

// Update returns the text of the document with other outputs, by command.
func (d *Document) Update(outputs map[int][]string, commands []Command) string {
	lines := slices.Clone(d.lines)
	for i, c := range slices.Backward(commands) {
		got, printed := outputs[i]
		if !printed || !c.Shown {
			continue
		}
		indent := lines[c.Line-1]
		indent = indent[:len(indent)-len(strings.TrimLeft(indent, " \t"))]
		shown := update(c.Want, got)
		for k, line := range shown {
			if line != "" {
				shown[k] = indent + line
			}
		}
		lines = slices.Replace(lines, c.from, c.to, shown...)
	}
	return strings.Join(lines, "\n") + "\n"
}
