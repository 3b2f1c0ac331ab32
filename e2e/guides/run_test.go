// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// scratchVariable has this program be the shell that the tests run, as sno-run is, with its scratch folder in there.
const scratchVariable = "SNO_GUIDES_TEST_SCRATCH"

func TestMain(m *testing.M) {
	if scratch := os.Getenv(scratchVariable); scratch != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := Shell{
			Programs: map[string]string{"greet": "/bin/echo"}, Scratch: scratch, Environment: []string{"GREETING=hello"},
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		}.Run(ctx)
		stop()
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runner runs documents in a shell without a cluster.
func runner(t *testing.T) Runner {
	t.Helper()
	return Runner{Limit: time.Minute, Progress: t.Logf, Program: func(ctx context.Context, _ Cluster) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), scratchVariable+"="+t.TempDir())
		return cmd
	}}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text        string
		run, notRun int
		// failures are how they begin.
		failures []string
		updated  string
	}{
		"everything right": {
			text: `
'''sh
# A comment is no command.
cd /
value=kept
echo ignored >&2
'''
'''console
$ echo "$value in $PWD"
kept in /
$ greet $GREETING \
    you
hello you
$ cat; echo to standard error >&2
to standard error
'''
<!-- guide: not run: x -->
'''console
$ false
'''
<!-- guide: run by x -->
'''sh
false

# comment
false
'''
`,
			run: 6, notRun: 3,
		},
		"several lines": {
			text: `
'''sh
for i in 1 2; do
  last=$i
done
cat >"$TMPDIR/file" <<EOF
in a file
EOF
false \
  || second=ran
'''
'''console
$ echo $last $second; cat "$TMPDIR/file"
2 ran
in a file
'''
`,
			run: 4,
		},
		"prints something else": {
			text:     "'''console\n$ echo a\nb\n$ echo c\nc\n'''\n",
			run:      2,
			failures: []string{"x.md:3: echo a\nprints something else (-want +got):\n- b\n+ a\n"},
			updated:  "'''console\n$ echo a\na\n$ echo c\nc\n'''\n",
		},
		"fails": {
			text: "'''console\n$ echo a; (exit 3)\na\n$ echo b\nb\n'''\n", run: 1, notRun: 1,
			failures: []string{"x.md:3: echo a; (exit 3)\nexit code 3 after printing:\na\n"},
		},
		"fails in a script": {
			text: "'''sh\ntrue\nfalse\ntrue\n'''\n", run: 2, notRun: 1,
			failures: []string{"x.md:4: false\nexit code 1 after printing:\n"},
		},
		"no such program": {
			text: "'''sh\nno-such-program\n'''\n", run: 1,
			failures: []string{"x.md:3: no-such-program\nexit code 127 after printing:\n"},
		},
		"no shell any more": {
			text: "'''sh\nexit 0\ntrue\n'''\n", run: 1, notRun: 1,
			failures: []string{"x.md:3: exit 0\nthe shell has ended after printing:\n"},
		},
		"no command": {text: "'''sh\n)\n'''\n", run: 1, failures: []string{"x.md:3: )\nexit code 2 after printing:\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const cluster = "<!-- guide: cluster none-sno -->\n"
			got, err := runner(t).Run(t.Context(), Parse("x.md", cluster+fences(test.text)))
			if err != nil {
				t.Fatal(err)
			}
			want := Result{Document: "x.md", Run: test.run, NotRun: test.notRun, Failures: test.failures, Updated: test.updated}
			if want.Updated != "" {
				want.Updated = cluster + fences(want.Updated)
			}
			for i := range min(len(got.Failures), len(want.Failures)) {
				if strings.HasPrefix(got.Failures[i], want.Failures[i]) {
					got.Failures[i] = want.Failures[i]
				}
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Result{}, "Took"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNothingIsLeft: processes that hold the writing end of a pipe end with the document, however that ends.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		last      string
		limit     time.Duration
		interrupt bool
		want      string
	}{
		"end of the document":   {last: "true", limit: time.Minute},
		"failure":               {last: "false", limit: time.Minute, want: "exit code 1"},
		"end of the shell":      {last: "exit 1", limit: time.Minute, want: "the shell has ended"},
		"time limit":            {last: `(sleep 1000; true) >"$PIPE"`, limit: time.Second, want: "time limit reached after 1s"},
		"time limit of a trap":  {last: `trap '' TERM INT; sleep 1000 >"$PIPE"`, limit: time.Second, want: "time limit reached after 1s"},
		"interruption":          {last: `sleep 1000 >"$PIPE"`, limit: time.Minute, interrupt: true},
		"interruption and trap": {last: `trap '' TERM INT; sleep 1000 >"$PIPE"`, limit: time.Minute, interrupt: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				reader, err := os.Open(pipe) // returns when the first process has opened it for writing
				if err == nil {
					if test.interrupt {
						cancel()
					}
					_, err = io.Copy(io.Discard, reader)
				}
				ended <- err
			}()
			text := fmt.Sprintf("<!-- guide: cluster none-sno -->\n```sh\nexport PIPE='%s'\nsleep 1000 >\"$PIPE\" &\n: >\"$PIPE\"\n%s\n```\n", pipe, test.last)
			r := runner(t)
			r.Limit = test.limit
			result, err := r.Run(ctx, Parse("x.md", text))
			if test.interrupt != errors.Is(err, context.Canceled) || !test.interrupt && err != nil {
				t.Errorf("got the error %v", err)
			}
			failures := strings.Join(result.Failures, "\n")
			if test.want == "" && failures != "" || !strings.Contains(failures, test.want) {
				t.Errorf("got %q, want %q", failures, test.want)
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Error("a process of the document still runs")
			}
		})
	}
}

func TestNoShell(t *testing.T) {
	t.Parallel()
	r := runner(t)
	r.Program = func(ctx context.Context, _ Cluster) *exec.Cmd { return exec.CommandContext(ctx, "false") }
	_, err := r.Run(t.Context(), Parse("x.md", "<!-- guide: cluster none-such -->\n```sh\ntrue\n```\n"))
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "x.md: start a cluster of scenario none-such") {
		t.Errorf("got %v", err)
	}
}
