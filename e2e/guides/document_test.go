// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// parse makes fences of the quotation marks that raw strings can hold.
func parse(text string) *Document {
	return Parse("x.md", []byte(strings.ReplaceAll(text, "'''", "```")))
}

const cluster = "<!-- guide: cluster none-sno -->\n"

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []Block
	}{
		"backticks and tildes": {
			"'''sh\na\n'''\n~~~ console extra words\n$ b\n~~~\n",
			[]Block{{Line: 1, Language: "sh", Lines: []string{"a"}}, {Line: 4, Language: "console", Lines: []string{"$ b"}}},
		},
		"list items": {
			"- one\n\n  '''sh\n  a\n    b\n\n  '''\n\n10. two\n    - three\n\n      '''console\n      $ c\n      '''\n",
			[]Block{{Line: 3, Language: "sh", Lines: []string{"a", "  b", ""}}, {Line: 12, Language: "console", Lines: []string{"$ c"}}},
		},
		"empty": {"text\n'''sh\n'''\n", []Block{{Line: 2, Language: "sh"}}},
		"marker for a make target": {
			"<!-- guide: run by e2e-boot -->\n'''sh\na\n'''\n'''sh\nb\n'''\n",
			[]Block{{Line: 2, Language: "sh", RunBy: "e2e-boot", Lines: []string{"a"}}, {Line: 5, Language: "sh", Lines: []string{"b"}}},
		},
		"marker with a reason": {
			"- x\n\n  <!-- guide: not run: it needs: a thing -->\n  '''sh\n  a\n  '''\n",
			[]Block{{Line: 4, Language: "sh", NotRun: "it needs: a thing", Lines: []string{"a"}}},
		},
		"marker in a block": {"'''text\n<!-- guide: run by x -->\n'''\n", []Block{{Line: 1, Language: "text", Lines: []string{"<!-- guide: run by x -->"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(test.text)
			if diff := cmp.Diff(test.want, d.Blocks, cmpopts.EquateEmpty()); diff != "" || len(d.faults) > 0 {
				t.Errorf("faults %v, blocks (-want +got):\n%s", d.faults, diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	targets := map[string]bool{"run": true, "e2e-boot": true}
	for name, test := range map[string]struct {
		text   string
		faults []string // how they begin
	}{
		"run on the cluster":           {cluster + "'''sh\na\n'''\n'''console\n$ b\n'''\n", nil},
		"run by a target with a value": {"<!-- guide: run by run ONCE=1 -->\n'''sh\na\n'''\n", nil},
		"not run":                      {"<!-- guide: not run: it takes a day -->\n'''console\n$ a\n'''\n", nil},
		"no commands":                  {"'''yaml\na: b\n'''\n'''text\n$ a\n'''\n", nil},
		"marker in inline code":        {"Write `<!-- guide: run by x -->` before it.\n", nil},
		"neither":                      {"'''sh\na\n'''\ntext\n'''console\n$ a\n'''\n", []string{"1: no test runs", "5: no test runs"}},
		"run by nobody":                {"<!-- guide: run by bench -->\n'''sh\na\n'''\n", []string{`2: neither .ci/run nor make nightly nor make weekly runs the target "bench"`}},
		"before the cluster":           {"'''sh\na\n'''\n" + cluster + "'''sh\na\n'''\n", []string{"1: no test runs"}},
		"cluster of no use":            {cluster + "<!-- guide: run by run -->\n'''sh\na\n'''\n", []string{"1: a marker for a cluster in a document without"}},
		"two clusters":                 {cluster + cluster + "'''sh\na\n'''\n", []string{"2: a second marker"}},
		"another language":             {"'''bash\nmake run\n'''\n~~~\nx\n~~~\n", []string{`1: the language is "bash"`, `4: the language is ""`}},
		"marker without commands":      {"<!-- guide: run by run -->\n'''yaml\na: b\n'''\n", []string{"2: a marker for a block of yaml"}},
		"console without a command":    {cluster + "'''sh\na\n'''\n'''console\na\n'''\n", []string{"5: a console block must begin with a command"}},
		"indented code":                {"text\n\n    a\n", []string{"3: indented code"}},
		"fence in a block quote":       {"> '''text\n> a\n> '''\n", []string{"1: code in a block quote"}},
		"unknown marker":               {"<!-- guide: skip -->\n'''text\na\n'''\n", []string{"1: unknown marker"}},
		"marker without a reason":      {"<!-- guide: not run: -->\n'''text\n'''\n", []string{"1: unknown marker"}},
		"marker in a text":             {"text <!-- guide: run by x -->\n", []string{"1: unknown marker"}},
		"marker before text":           {"<!-- guide: run by x -->\n\ntext\n", []string{`1: a marker "run by" without a fence`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(test.text).Faults(targets)
			for i := range max(len(got), len(test.faults)) {
				if i >= len(got) || i >= len(test.faults) || !strings.HasPrefix(got[i], "x.md:"+test.faults[i]) {
					t.Fatalf("got %q, want %q", got, test.faults)
				}
			}
		})
	}
}

func TestTargets(t *testing.T) {
	const makefile = "VAR := a:b\nhelp: ## Show\nnightly: needed ## Everything\n\t@recipe: no target\n\t$(MAKE) proof e2e-boot\n\t$(MAKE) soak N=1000\n" +
		"needed:\nweekly: nightly\nboot bench: other\nother:\nproof: suite\nsuite: ## Suite\nproof/%:\ne2e-boot:\nsoak:\nrun: ## Run\n\t@echo boot\ncommented:\n"
	want := []string{"e2e-boot", "needed", "nightly", "proof", "run", "soak", "suite", "weekly"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(Targets(makefile, "#!/bin/sh\n# make commented\n\tstep make run ONCE=1\n")))); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}
