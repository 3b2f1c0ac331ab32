// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run runs a document in a shell without a cluster.
func run(t *testing.T, text string) (*Document, []Result) {
	t.Helper()
	d := parse(cluster + text)
	results, err := Run(d, exec.CommandContext(t.Context(), "bash"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d, results
}

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		text     string
		run      int
		failures []string // how they begin
	}{
		"one shell":          {"'''sh\ncd /\nvalue=kept\necho ignored >&2\n'''\n'''console\n$ echo \"$value in $PWD\"\nkept in /\n$ echo a \\\n    b\na b\n$ cat; echo error >&2\nerror\n'''\n", 4, nil},
		"not run":            {"'''sh\ntrue\n'''\n<!-- guide: not run: x -->\n'''console\n$ false\n'''\n<!-- guide: run by x -->\n'''sh\nfalse\n'''\n", 1, nil},
		"here-document":      {"'''sh\nfor i in 1 2; do\n  last=$i\ndone\ncat >/dev/null <<EOF\nin a file\nEOF\nfalse \\\n  || second=ran\n'''\n'''console\n$ echo $last $second\n2 ran\n'''\n", 2, nil},
		"another output":     {"'''console\n$ echo a\nb\n$ echo c\nc\n'''\n", 2, []string{"it prints:\na\nand not:\nb"}},
		"no output":          {"'''console\n$ true\nb\n'''\n", 1, []string{"it prints:\nand not:\nb"}},
		"fails":              {"'''console\n$ echo a; (exit 3)\na\n$ echo b\nb\n'''\n", 1, []string{"exit code 3 after printing:\na\n"}},
		"fails in a script":  {"'''sh\necho a\nfalse\ntrue\n'''\n'''sh\ntrue\n'''\n", 1, []string{"it has ended the shell (exit status 1) after printing:\na\n"}},
		"no shell any more":  {"'''console\n$ exit 0\n$ true\n'''\n", 1, []string{"it has ended the shell (<nil>)"}},
		"not a command":      {"'''console\n$ )\n'''\n", 1, []string{"exit code "}},
		"quotes in progress": {"'''console\n$ echo 'a'\na\n'''\n", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, results := run(t, test.text)
			var failures []string
			for _, r := range results {
				if r.Failure != "" {
					failures = append(failures, r.Failure)
				}
			}
			if len(results) != test.run || len(failures) != len(test.failures) {
				t.Fatalf("%d commands ran, want %d; failures %q", len(results), test.run, failures)
			}
			for i, want := range test.failures {
				if !strings.HasPrefix(failures[i], want) {
					t.Errorf("failure %q, want %q", failures[i], want)
				}
			}
		})
	}
	if _, err := Run(parse(cluster+"'''sh\ntrue\n'''\n"), exec.CommandContext(t.Context(), "false"), t.TempDir()); err == nil {
		t.Error("a shell that does not start is no error")
	}
}

func TestMatches(t *testing.T) {
	for name, test := range map[string]struct {
		want, got string
		same      bool
	}{
		"same":                 {"a\nb", "a\nb", true},
		"another line":         {"a\nb\nc", "a\nx\nc", false},
		"line too many":        {"a", "a\nb", false},
		"line too few":         {"a\nb", "b", false},
		"any lines":            {"a\n...\nd", "a\nb\nc\nd", true},
		"any lines are none":   {"...\na\n...", "a", true},
		"not after any lines":  {"a\n...\nd", "a\nb", false},
		"several any lines":    {"...\nb\n...\nd", "a\nb\nb\nc\nd", true},
		"blanks at the end":    {"a", "a  ", true},
		"width of columns":     {"NAME    AGE\na       5s", "NAME      AGE\na         12s", true},
		"indentation":          {"  a", "    a", false},
		"one blank":            {"a b", "a  b", false},
		"ages":                 {"5s 1m 2h", "6s 2m30s 1.5ms", true},
		"age in brackets":      {"1 (5m12s ago)", "1 (2s ago)", true},
		"value of a flag":      {"--timeout=5m", "--timeout=6m", false},
		"number":               {"a 5", "a 6", false},
		"age that is a number": {"a 5s", "a 5", false},
		"time":                 {"21:35:57 a", "01:02:03 a", true},
		"time with its date":   {"at: 2026-11-26T21:35:57Z", "at: 2027-01-02T03:04:05.678+01:00", true},
		"UID":                  {"uid: 00000000-0000-4000-8000-000000000000", "uid: 5aa1d5d8-2f2d-4e2b-9c0e-0a1b2c3d4e5f", true},
		"pod":                  {"router-default-7866769548-r5sb4  1/1", "router-default-6d9c7b8f5-xk2lp  1/1", true},
		"another pod":          {"router-default-7866769548-r5sb4", "router-custom-7866769548-r5sb4", false},
		"words":                {"a-https", "a-proxy", false},
	} {
		if got := matches(strings.Split(test.want, "\n"), strings.Split(test.got, "\n")); got != test.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Only outputs that differ are replaced, in the block that they are in.
func TestUpdated(t *testing.T) {
	const before = "# Title\n" + cluster + "'''console\n$ echo same 5s\nsame 9s\n$ echo new\nold\nolder\n$ printf '' \\\n  \ngone\n'''\n- item\n\n  '''console\n  $ printf 'a\\n\\n  b\\n'\n  a\n  '''\n"
	const after = "# Title\n" + cluster + "'''console\n$ echo same 5s\nsame 9s\n$ echo new\nnew\n$ printf '' \\\n  \n'''\n- item\n\n  '''console\n  $ printf 'a\\n\\n  b\\n'\n  a\n\n    b\n  '''\n"
	d := parse(before)
	results, err := Run(d, exec.CommandContext(t.Context(), "bash"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(after, "'''", "```"), d.Updated(results)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}
