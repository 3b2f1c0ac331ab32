// SPDX-License-Identifier: Apache-2.0

//go:build unix

package existing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

// endLimit is for the end of a command and of what it leaves.
const endLimit = 20 * time.Second

// perform runs the three commands of a target, all with the same line, and returns the output and the log of each.
func perform(ctx context.Context, t *testing.T, line string) (progress string, errs map[string]error, logs map[string]string) {
	t.Helper()
	var text strings.Builder
	folder := filepath.Join(t.TempDir(), "artifacts")
	var target cluster.Target
	attach(&target, Options{RebootCommand: line, OutageCommand: line, UpgradeCommand: line, Artifacts: folder, Progress: &text})
	errs, logs = map[string]error{}, map[string]string{}
	for name, act := range map[string]func() error{
		"reboot-command":  func() error { return target.RestartNode(ctx, "a b; $HOME") },
		"outage-command":  func() error { return target.Outage(ctx, 90*time.Second) },
		"upgrade-command": func() error { return target.Upgrade(ctx) },
	} {
		errs[name] = act()
		log, err := os.ReadFile(filepath.Join(folder, name+".log"))
		if err != nil {
			t.Error(err)
		}
		logs[name] = string(log)
	}
	return text.String(), errs, logs
}

// Arguments are one word each, whatever they contain, and the line is one of the shell.
func TestCommands(t *testing.T) {
	script := filepath.Join(t.TempDir(), "a hook")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$# $1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]map[string]string{
		"'" + script + "'": {"reboot-command": "1 a b; $HOME", "outage-command": "0 ", "upgrade-command": "0 "},
		`sh -c 'echo "restart $0 for ${SNO_OUTAGE_SECONDS:-ever}"'`: {
			"reboot-command": "restart a b; $HOME for ever", "outage-command": "restart sh for 90", "upgrade-command": "restart sh for ever",
		},
	} {
		progress, errs, logs := perform(t.Context(), t, line)
		for name, out := range want {
			if errs[name] != nil || logs[name] != out+"\n" || !strings.Contains(progress, name+": running "+line+"\n"+out+"\n") {
				t.Errorf("%s: %v, log %q, want %q in:\n%s", name, errs[name], logs[name], out, progress)
			}
		}
	}
	var without cluster.Target
	if attach(&without, Options{}); without.RestartNode != nil || without.Outage != nil || without.Upgrade != nil {
		t.Errorf("acts without commands: %+v", without)
	}
}

func TestFailedCommand(t *testing.T) {
	for line, want := range map[string]string{
		"echo working; echo no route to host >&2; exit 3;": ": the command failed: exit status 3: no route to host",
		"sno-no-such-program":                              "sno-no-such-program",
	} {
		progress, errs, _ := perform(t.Context(), t, line)
		for name, err := range errs {
			if !errors.Is(err, catalogue.ErrNotPerformed) || !strings.Contains(err.Error(), name+": the command failed") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if !strings.Contains(progress, "upgrade-command: the command failed: exit status") {
			t.Errorf("%s: the failure is not printed:\n%s", line, progress)
		}
	}
}

// reading calls its function with what is written.
type reading func(string)

func (r reading) Write(p []byte) (int, error) { r(string(p)); return len(p), nil }

// An interruption ends all processes of the group, and the command can clean up.
func TestInterruptedCommand(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	began, child, cleaned := time.Now(), 0, false
	h := hook{name: "outage-command", line: `trap 'echo cleaned; exit 1' TERM; sleep 100 & echo $!; wait;:`, progress: reading(func(text string) {
		if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
			child = pid
			interrupt(errors.New("Ctrl-C"))
		}
		cleaned = cleaned || text == "cleaned\n"
	})}
	err := h.run(ctx, nil)
	if !errors.Is(err, catalogue.ErrNotPerformed) || !strings.Contains(err.Error(), "the command was stopped: Ctrl-C") || !cleaned || time.Since(began) > endLimit {
		t.Errorf("%v after %s, cleaned: %t", err, time.Since(began), cleaned)
	}
	ended(t, child)
}

// A process that the command leaves is killed, although it has the command's output open. One that has left the group
// is not, and does not delay the end.
func TestLeftProcesses(t *testing.T) {
	for line, detached := range map[string]bool{
		`sleep 100 & echo $!;:`:                              false,
		`setsid sh -c 'echo $$; exec sleep 100' & sleep 1;:`: true,
	} {
		began, child := time.Now(), 0
		h := hook{name: "reboot-command", line: line, progress: reading(func(text string) {
			if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
				child = pid
			}
		})}
		if err := h.run(t.Context(), nil); err != nil || child == 0 || time.Since(began) > endLimit {
			t.Fatalf("%v, process %d after %s", err, child, time.Since(began))
		}
		if !detached {
			ended(t, child)
			continue
		}
		process, err := os.FindProcess(child)
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Kill(); err != nil {
			t.Errorf("the detached process has ended: %v", err)
		}
	}
}

// ended waits until a process is gone or a zombie.
func ended(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(endLimit)
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
