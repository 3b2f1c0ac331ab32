// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	const cluster = "<!-- guide: cluster none-sno -->\n"
	targets := map[string]bool{"run": true, "e2e-boot": true}
	for name, test := range map[string]struct {
		text   string
		faults []string
	}{
		"run on the cluster":           {text: cluster + "'''sh\na\n'''\n'''console\n$ b\n'''\n"},
		"run by a target":              {text: "<!-- guide: run by e2e-boot -->\n'''sh\na\n'''\n"},
		"run by a target with a value": {text: "<!-- guide: run by run ONCE=1 -->\n'''sh\na\n'''\n"},
		"not run":                      {text: "<!-- guide: not run: it takes a day -->\n'''console\n$ a\n'''\n"},
		"no commands":                  {text: "'''yaml\na: b\n'''\n'''text\n$ a\n'''\n'''mermaid\n'''\n"},
		"neither":                      {text: "'''sh\na\n'''\ntext\n'''console\n$ a\n'''\n", faults: []string{"1: no test runs", "5: no test runs"}},
		"run by nobody": {
			text:   "<!-- guide: run by bench -->\n'''sh\na\n'''\n",
			faults: []string{`1: neither .ci/run nor make nightly nor make weekly runs the target "bench"`},
		},
		"before the cluster": {
			text:   "'''sh\na\n'''\n" + cluster + "'''sh\na\n'''\n",
			faults: []string{"1: these commands come before the marker"},
		},
		"cluster of no use": {
			text:   cluster + "<!-- guide: run by run -->\n'''sh\na\n'''\n",
			faults: []string{"1: a marker for a cluster in a document without"},
		},
		"no language": {text: "'''\nmake run\n'''\n", faults: []string{`1: the language is ""`}},
		"language of other tools": {
			text:   "'''bash\nmake run\n'''\n~~~shell\n~~~\n",
			faults: []string{`1: the language is "bash"`, `4: the language is "shell"`},
		},
		"marker without commands":   {text: "<!-- guide: run by run -->\n'''yaml\na: b\n'''\n", faults: []string{"2: a marker for a block of yaml"}},
		"console without a command": {text: cluster + "'''console\na\n$ b\n'''\n", faults: []string{"2: a console block must begin with a command"}},
		"empty console":             {text: cluster + "'''console\n'''\n", faults: []string{"2: a console block must begin with a command"}},
		"faults of the text, by line": {
			text:   "'''sh\na\n'''\n\n    a\n\n'''sh\nb\n'''\n",
			faults: []string{"1: no test runs", "5: indented code", "7: no test runs"},
		},
		"unknown marker hides no block": {text: "<!-- guide: skip -->\n'''sh\na\n'''\n", faults: []string{"1: unknown marker", "2: no test runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareFaults(t, test.faults, Parse("x.md", fences(test.text)).Faults(targets))
		})
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	const makefile = `VAR := a:b
help: ## Show this list
nightly: needed ## Everything
	@recipe: no target
	$(MAKE) proof e2e-boot
	$(MAKE) soak N=1000
needed:
weekly: nightly
boot bench: other
other:
proof: proof-suite
proof-suite: ## Suite
proof/%:
e2e-boot:
soak:
run: ## Run
	@echo boot
commented:
`
	const ci = `#!/bin/sh
# make commented
	step make run ONCE=1
`
	want := []string{"e2e-boot", "needed", "nightly", "proof", "proof-suite", "run", "soak", "weekly"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(Targets(makefile, ci)))); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(fences(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Makefile", "run:\n")
	write(".ci/run", "make run\n")
	write("docs/deep/right.md", "<!-- guide: run by run -->\n'''sh\na\n'''\n")
	for _, name := range []string{"docs/kubectl-sno/a.md", "ingress/testdata/a.md", ".github/a.md", "docs/a.txt"} {
		write(name, "    a\n")
	}
	faults, err := Check(root)
	if err != nil || len(faults) > 0 {
		t.Errorf("got %v, %v", faults, err)
	}
	write("docs/deep/wrong.md", "    a\n")
	faults, err = Check(root)
	if err != nil || len(faults) != 1 || faults[0].Document != "docs/deep/wrong.md" {
		t.Errorf("got %v, %v, want one fault of docs/deep/wrong.md", faults, err)
	}
}
