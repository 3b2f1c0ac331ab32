// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fences makes fences of the quotation marks that raw strings can hold.
func fences(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "'''", "```"), "\n")
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text    string
		want    []Block
		cluster *Cluster
		faults  []string
	}{
		"backticks and tildes": {
			text: "'''sh\na\n'''\n~~~ console extra words\n$ b\n~~~\n",
			want: []Block{{Line: 1, Language: "sh", Lines: []string{"a"}}, {Line: 4, Language: "console", Lines: []string{"$ b"}}},
		},
		"fence in a longer fence": {
			text: "''''''sh\n'''\na\n'''\n''''''\n~~~sh\n'''\n~~~\n",
			want: []Block{{Line: 1, Language: "sh", Lines: []string{"```", "a", "```"}}, {Line: 6, Language: "sh", Lines: []string{"```"}}},
		},
		"line with a language closes nothing": {
			text: "'''sh\n'''sh\n'''\n",
			want: []Block{{Line: 1, Language: "sh", Lines: []string{"```sh"}}},
		},
		"backticks in the info string are no fence": {text: "'''sh''' in a text\n"},
		"three blanks": {text: "   '''sh\n   a\n     b\n c\n   '''\n", want: []Block{{Line: 1, Language: "sh", Lines: []string{"a", "  b", "c"}}}},
		"four blanks are no closing fence": {
			text: "'''sh\n    '''\n\ta\n'''\n",
			want: []Block{{Line: 1, Language: "sh", Lines: []string{"    ```", "\ta"}}},
		},
		"list items": {
			text: "- one\n\n  '''sh\n  a\n  '''\n\n10. two\n    - three\n\n      '''console\n      $ b\n      '''\n- '''sh\n  c\n  '''\n",
			want: []Block{
				{Line: 3, Language: "sh", Lines: []string{"a"}},
				{Line: 10, Language: "console", Lines: []string{"$ b"}},
				{Line: 13, Language: "sh", Lines: []string{"c"}},
			},
		},
		"block that ends with its list item": {
			text:   "- one\n  '''sh\n  a\n\ntext\n",
			want:   []Block{{Line: 2, Language: "sh", Lines: []string{"a", ""}}},
			faults: []string{"2: the fence is not closed before line 5"},
		},
		"open fence": {
			text:   "'''sh\na\n",
			want:   []Block{{Line: 1, Language: "sh", Lines: []string{"a"}}},
			faults: []string{"1: the fence is not closed before line 3"},
		},
		"indented code":                 {text: "text\n\n    a\n    b\n\ntext\n", faults: []string{"3: indented code"}},
		"indented code after a heading": {text: "# Heading\n    a\n", faults: []string{"2: indented code"}},
		"indented code after a block": {
			text:   "'''text\n'''\n    a\n",
			want:   []Block{{Line: 1, Language: "text"}},
			faults: []string{"3: indented code"},
		},
		"indented code by a tab":         {text: "\ta\n", faults: []string{"1: indented code"}},
		"indented code in a list item":   {text: "- one\n\n      a\n", faults: []string{"3: indented code"}},
		"indented code as a list item":   {text: "-     a\n", faults: []string{"1: indented code"}},
		"fence that is indented code":    {text: "text\n\n    '''sh\n    a\n    '''\n", faults: []string{"3: indented code"}},
		"paragraph that goes on":         {text: "text\n    goes on\n\n- item\n      goes on\ntoo\n      and on\n"},
		"paragraph of a list item":       {text: "1. one\n\n   paragraph\n   - two\n\n     paragraph\n"},
		"number that begins no list":     {text: "A year such as\n1999. That is text.\n    too\n"},
		"indented code after a break":    {text: "text\n\n***\n    a\n", faults: []string{"4: indented code"}},
		"indented code in a comment":     {text: "<!-- a\n\n    b\n-->\n    c\n", faults: []string{"5: indented code"}},
		"code in a block quote":          {text: "> '''sh\n> a\n> '''\n", faults: []string{"1: code in a block quote", "3: code in a block quote"}},
		"indented code in a block quote": {text: ">     a\n", faults: []string{"1: code in a block quote"}},
		"block quote":                    {text: "> text\n> more\n"},
		"carriage returns":               {text: "'''sh\r\na\r\n'''\r\n", want: []Block{{Line: 1, Language: "sh", Lines: []string{"a"}}}},
		"marker for a cluster": {
			text:    "<!-- guide: cluster none-sno -keep -x=1 -->\n",
			cluster: &Cluster{1, "none-sno", []string{"-keep", "-x=1"}},
		},
		"two clusters": {
			text:    "<!-- guide: cluster a -->\n<!-- guide: cluster b -->\n",
			cluster: &Cluster{Line: 1, Scenario: "a"},
			faults:  []string{"2: a second marker"},
		},
		"marker for a make target": {
			text: "<!-- guide: run by e2e-boot -->\n'''sh\na\n'''\n",
			want: []Block{{Line: 2, Language: "sh", RunBy: "e2e-boot", Lines: []string{"a"}}},
		},
		"marker with a reason": {
			text: "- x\n\n  <!-- guide: not run: it needs: a thing -->\n  '''sh\n  a\n  '''\n",
			want: []Block{{Line: 4, Language: "sh", NotRun: "it needs: a thing", Lines: []string{"a"}}},
		},
		"marker is for one block": {
			text: "<!-- guide: run by x -->\n'''sh\n'''\n'''sh\n'''\n",
			want: []Block{{Line: 2, Language: "sh", RunBy: "x"}, {Line: 4, Language: "sh"}},
		},
		"marker before a blank line": {
			text:   "<!-- guide: run by x -->\n\n'''sh\n'''\n",
			want:   []Block{{Line: 3, Language: "sh"}},
			faults: []string{`1: a marker "run by" without a fence`},
		},
		"marker before text": {text: "<!-- guide: not run: x -->\ntext\n", faults: []string{`1: a marker "not run:" without a fence`}},
		"marker before a marker": {
			text:   "<!-- guide: run by x -->\n<!-- guide: run by y -->\n'''sh\n'''\n",
			want:   []Block{{Line: 3, Language: "sh", RunBy: "y"}},
			faults: []string{`1: a marker "run by"`},
		},
		"marker at the end":           {text: "text\n\n<!-- guide: run by x -->\n", faults: []string{`3: a marker "run by"`}},
		"marker before indented code": {text: "<!-- guide: run by x -->\n    a\n", faults: []string{"2: indented code", `1: a marker "run by"`}},
		"unknown marker": {
			text:   "<!-- guide: skip -->\n'''sh\n'''\n",
			want:   []Block{{Line: 2, Language: "sh"}},
			faults: []string{"1: unknown marker"},
		},
		"marker without a reason": {
			text:   "<!-- guide: not run: -->\n'''sh\n'''\n",
			want:   []Block{{Line: 2, Language: "sh"}},
			faults: []string{"1: unknown marker"},
		},
		"marker in other words": {text: "<!--guide: run by x-->\n", faults: []string{"1: unknown marker"}},
		"marker in a text":      {text: "text <!-- guide: run by x -->\n", faults: []string{"1: unknown marker"}},
		"marker on two lines":   {text: "<!-- more\nguide: run by x -->\n"},
		"marker in inline code": {text: "Write `<!-- guide: run by x -->` before it.\n"},
		"marker in a block": {
			text: "'''text\n<!-- guide: run by x -->\n'''\n",
			want: []Block{{Line: 1, Language: "text", Lines: []string{"<!-- guide: run by x -->"}}},
		},
		"marker that another one is behind": {text: "<!-- guide: run by x --> <!-- guide: run by y -->\n", faults: []string{`1: a marker "run by"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Parse("x.md", fences(test.text))
			if diff := cmp.Diff(test.want, d.Blocks, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.cluster, d.Cluster, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("cluster (-want +got):\n%s", diff)
			}
			compareFaults(t, test.faults, d.faults)
		})
	}
}

// compareFaults wants faults that begin with these texts.
func compareFaults(t *testing.T, want []string, got []Fault) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			t.Errorf("unexpected fault: %s", got[i])
		case i >= len(got):
			t.Errorf("no fault %q", want[i])
		case !strings.HasPrefix(got[i].String(), "x.md:"+want[i]):
			t.Errorf("got the fault %q, want %q", got[i], "x.md:"+want[i])
		}
	}
}
