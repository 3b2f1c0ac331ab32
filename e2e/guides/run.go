// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Result is the outcome of a command.
type Result struct {
	Command
	Got []string
	// Failure is what is wrong; empty for nothing. Differs means that it is the output only.
	Failure string
	Differs bool
}

// Run runs the commands of a document in a shell that reads them from its standard input, such as sno-run -shell. A
// command that fails ends the shell; the others are not in the results. The shell's standard error has the progress.
func Run(d *Document, shell *exec.Cmd, scratch string) ([]Result, error) {
	var script strings.Builder
	commands := d.Commands()
	at := func(kind string, i int) string { return filepath.Join(scratch, fmt.Sprintf("%s.%d", kind, i)) }
	for i, c := range commands {
		// The output of background jobs goes into the file of their command.
		text := "set -e\n" + c.Text + "\nset +e\n"
		if c.Shown {
			text = c.Text + "\n"
		}
		if err := os.WriteFile(at("command", i), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write a command: %w", err)
		}
		first, _, _ := strings.Cut(c.Text, "\n")
		fmt.Fprintf(&script, "{ source '%s'; } >'%s' 2>&1 </dev/null; code=$?; echo $code >'%s'; [ $code = 0 ] || exit 1\n", at("command", i), at("output", i), at("code", i))
		fmt.Fprintf(&script, "echo '%s:%d' %s >&2\n", d.Name, c.Line, "'"+strings.ReplaceAll(first, "'", `'\''`)+"'")
	}
	shell.Stdin = strings.NewReader(script.String())
	ended := shell.Run()
	var results []Result
	for i, c := range commands {
		printed, err := os.ReadFile(at("output", i))
		if err != nil {
			break // it was not reached
		}
		r := Result{Command: c, Got: strings.Split(strings.TrimSuffix(string(printed), "\n"), "\n")}
		if len(printed) == 0 {
			r.Got = nil
		}
		code, err := os.ReadFile(at("code", i))
		switch exit := strings.TrimSpace(string(code)); {
		case err != nil:
			r.Failure = fmt.Sprintf("it has ended the shell (%v) after printing:\n%s", ended, printed)
		case exit != "0":
			r.Failure = fmt.Sprintf("exit code %s after printing:\n%s", exit, printed)
		case c.Shown && !matches(c.Want, r.Got):
			r.Differs = true
			r.Failure = fmt.Sprintf("it prints:\n%sand not:\n%s\n", printed, strings.Join(c.Want, "\n"))
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("%s: the shell on cluster %v runs nothing: %w", d.Name, d.Cluster, ended)
	}
	return results, nil
}

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

// matches reports whether the printed lines are the wanted ones.
func matches(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == anything:
		return matches(want[1:], got) || len(got) > 0 && matches(want, got[1:])
	}
	return len(got) > 0 && normalise(want[0]) == normalise(got[0]) && matches(want[1:], got[1:])
}

// Updated returns the text of the document with the outputs that differ replaced by what was printed.
func (d *Document) Updated(results []Result) string {
	lines := slices.Clone(d.lines)
	for _, r := range slices.Backward(results) {
		if !r.Differs {
			continue
		}
		command := lines[r.Line-1]
		indent := command[:len(command)-len(strings.TrimLeft(command, " "))]
		var shown []string
		for _, line := range r.Got {
			shown = append(shown, strings.TrimRight(indent+line, " \t\r"))
		}
		lines = slices.Replace(lines, r.from, r.from+len(r.Want), shown...)
	}
	return strings.Join(lines, "\n") + "\n"
}
