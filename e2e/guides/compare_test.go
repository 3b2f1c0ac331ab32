// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines splits a text; of the empty text there are none.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func TestDiff(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ want, got, diff string }{
		"nothing":              {},
		"same":                 {want: "a\nb", got: "a\nb"},
		"other line":           {want: "a\nb\nc", got: "a\nx\nc", diff: "  a\n- b\n+ x\n  c\n"},
		"line too many":        {want: "a", got: "a\nb", diff: "  a\n+ b\n"},
		"line too few":         {want: "a\nb", got: "b", diff: "- a\n  b\n"},
		"nothing printed":      {want: "a", diff: "- a\n"},
		"nothing wanted":       {got: "a", diff: "+ a\n"},
		"blank line too many":  {want: "a", got: "a\n", diff: "  a\n+ \n"},
		"order":                {want: "a\nb", got: "b\na", diff: "- a\n  b\n+ a\n"},
		"any lines":            {want: "a\n...\nd", got: "a\nb\nc\nd"},
		"any lines are none":   {want: "...\na\n...", got: "a"},
		"only any lines":       {want: "...", got: "a\nb"},
		"not after any lines":  {want: "a\n...\nd", got: "a\nb", diff: "  a\n  ...\n- d\n+ b\n"},
		"several any lines":    {want: "...\nb\n...\nd", got: "a\nb\nb\nc\nd"},
		"before any lines":     {want: "a\n...", got: "x\nb", diff: "- a\n+ x\n  ...\n"},
		"blanks at the end":    {want: "a", got: "a  "},
		"width of columns":     {want: "NAME    AGE\na       5s", got: "NAME      AGE\na         12s"},
		"indentation":          {want: "  a", got: "    a", diff: "-   a\n+     a\n"},
		"one blank":            {want: "a b", got: "a  b", diff: "- a b\n+ a  b\n"},
		"age":                  {want: "a   5m12s", got: "a   3d"},
		"two ages":             {want: "5s 1m 2h", got: "6s 2m30s 1.5ms"},
		"age in brackets":      {want: "1 (5m12s ago)", got: "1 (2s ago)"},
		"value of a flag":      {want: "--timeout=5m", got: "--timeout=6m", diff: "- --timeout=5m\n+ --timeout=6m\n"},
		"number":               {want: "a 5", got: "a 6", diff: "- a 5\n+ a 6\n"},
		"age that is a number": {want: "a 5s", got: "a 5", diff: "- a 5s\n+ a 5\n"},
		"time":                 {want: "21:35:57 a", got: "01:02:03 a"},
		"time with its date":   {want: "at: 2026-11-26T21:35:57Z", got: "at: 2027-01-02T03:04:05.678+01:00"},
		"UID":                  {want: "uid: 00000000-0000-4000-8000-000000000000", got: "uid: 5aa1d5d8-2f2d-4e2b-9c0e-0a1b2c3d4e5f"},
		"pod":                  {want: "router-default-7866769548-r5sb4  1/1", got: "router-default-6d9c7b8f5-xk2lp  1/1"},
		"ReplicaSet":           {want: "replicaset/router-default-7866769548", got: "replicaset/router-default-6d9c7b8f5"},
		"other pod": {
			want: "router-default-7866769548-r5sb4",
			got:  "router-custom-7866769548-r5sb4",
			diff: "- router-default-7866769548-r5sb4\n+ router-custom-7866769548-r5sb4\n",
		},
		"words that look random": {want: "a-https", got: "a-proxy", diff: "- a-https\n+ a-proxy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if wrong := cmp.Diff(test.diff, diff(lines(test.want), lines(test.got))); wrong != "" {
				t.Errorf("diff (-want +got):\n%s", wrong)
			}
		})
	}
}

// TestUpdate: only lines that are wrong change, in the block that they are in.
func TestUpdate(t *testing.T) {
	t.Parallel()
	const text = `# Title
<!-- guide: cluster none-sno -->
'''console
$ one
same 5s
old
...
$ two
$ three \
  more
gone
'''

- item

  '''console
  $ four

  old
  '''
'''sh
five
'''
`
	const want = `# Title
<!-- guide: cluster none-sno -->
'''console
$ one
same 5s
new
...
$ two
printed
$ three \
  more
'''

- item

  '''console
  $ four

  new
    indented
  '''
'''sh
five
'''
`
	d := Parse("x.md", fences(text))
	commands, err := d.Commands(func(string) (bool, error) { return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	got := d.Update(map[int][]string{
		0: {"same 9s", "new", "anything", "else"}, 1: {"printed  "}, 2: nil, 3: {"", "new", "  indented"}, 4: {"of a script"},
	}, commands)
	if diff := cmp.Diff(fences(want), got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fences(text), d.Update(nil, commands)); diff != "" {
		t.Errorf("document without outputs (-want +got):\n%s", diff)
	}
}
