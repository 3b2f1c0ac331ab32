// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const limit = 20 * time.Second

type result struct {
	out, problems []string
	left          bool
	err           error
}

func run(ctx context.Context, c Command) result {
	var r result
	c.Out = func(line string) { r.out = append(r.out, line) }
	c.Err = func(line string) { r.problems = append(r.problems, line) }
	r.left, r.err = c.Run(ctx)
	return r
}

// Arguments are one word each, whatever they contain, and the line is one of the shell.
func TestArguments(t *testing.T) {
	script := filepath.Join(t.TempDir(), "a hook")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"script: $1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		line string
		args []string
		want []string
	}{
		"appended":        {line: "printf '%s|'", args: []string{"a b", "$HOME", "; rm"}, want: []string{"a b|$HOME|; rm|"}},
		"none":            {line: "echo none", want: []string{"none"}},
		"a path":          {line: "'" + script + "'", args: []string{"node"}, want: []string{"script: node"}},
		"in the middle":   {line: `sh -c 'echo "restart $0 now"'`, args: []string{"node"}, want: []string{"restart node now"}},
		"the environment": {line: `sh -c 'echo $SNO_TEST'`, want: []string{"7"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t.Context(), Command{Line: test.line, Args: test.args, Env: []string{"SNO_TEST=7"}})
			if diff := cmp.Diff(test.want, got.out); diff != "" || got.err != nil || got.left {
				t.Errorf("%v, left %t (-want +got):\n%s", got.err, got.left, diff)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	got := run(t.Context(), Command{Line: "echo working; echo no route to host >&2; exit 3"})
	if !errors.Is(got.err, ErrFailed) || !strings.Contains(got.err.Error(), "exit status 3") || got.problems[0] != "no route to host" {
		t.Errorf("%v, standard error %q", got.err, got.problems)
	}
	if got := run(t.Context(), Command{Line: "sno-no-such-program"}); !errors.Is(got.err, ErrFailed) || !strings.Contains(got.err.Error(), "sno-no-such-program") {
		t.Error(got.err)
	}
}

// An interruption ends all processes of the group, and the command can clean up.
func TestInterruption(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	began := time.Now()
	var child int
	c := Command{
		Line: `trap 'echo cleaned; exit 1' TERM; sleep 100 & echo $!; wait;:`,
		Out: func(line string) {
			if pid, err := strconv.Atoi(line); err == nil {
				child = pid
				interrupt(errors.New("Ctrl-C"))
			}
		},
	}
	out := c.Out
	var lines []string
	c.Out = func(line string) { lines = append(lines, line); out(line) }
	_, err := c.Run(ctx)
	if !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "Ctrl-C") || time.Since(began) > limit {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if len(lines) != 2 || lines[1] != "cleaned" {
		t.Errorf("the output is %q", lines)
	}
	ended(t, child)
}

// A process that the command leaves is killed, although it has the command's output open.
func TestLeftChild(t *testing.T) {
	began := time.Now()
	got := run(t.Context(), Command{Line: `sleep 100 & echo $!;:`})
	if got.err != nil || !got.left || time.Since(began) > limit {
		t.Fatalf("%v, left %t after %s", got.err, got.left, time.Since(began))
	}
	child, err := strconv.Atoi(got.out[0])
	if err != nil {
		t.Fatal(err)
	}
	ended(t, child)
}

// A process that has left the group and has the output open does not delay the end.
func TestDetachedChild(t *testing.T) {
	began := time.Now()
	got := run(t.Context(), Command{Line: `setsid sh -c 'echo $$; exec sleep 100' & sleep 1;:`})
	if got.err != nil || time.Since(began) > limit || len(got.out) != 1 {
		t.Fatalf("%v, %q after %s", got.err, got.out, time.Since(began))
	}
	child, err := strconv.Atoi(got.out[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Errorf("the detached process has ended: %v", err)
	}
}

// ended waits until a process is gone or a zombie.
func ended(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(limit)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("process %d is still running: %s", pid, text)
		}
	}
}
