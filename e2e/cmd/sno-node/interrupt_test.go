// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/e2e/programs"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

const (
	// selfEnv makes the test binary the program, and wantedEnv enables the test.
	selfEnv   = "SNO_TEST_NODE_INTERRUPT"
	wantedEnv = "SNO_E2E_NODE_INTERRUPT"
	// endLimit limits the removal of the machine after the interruption.
	endLimit    = time.Minute
	testMachine = "interrupted-node"
)

func TestMain(m *testing.M) {
	if os.Getenv(selfEnv) != "" {
		os.Exit(start())
	}
	os.Exit(m.Run())
}

// Ctrl-C at any line of output leaves nothing behind: no container, no volume, no network, no file.
func TestInterrupted(t *testing.T) {
	if os.Getenv(wantedEnv) == "" {
		t.Skip("machines take minutes: " + wantedEnv + "=1 go test -run Interrupted ./cmd/sno-node")
	}
	e, err := engine.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The image of a node and the programs are cached.
	if _, _, err := nodeimage.Ensure(t.Context(), e, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := programs.Build(t.Context(), programs.Render, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"of at most 3: kubeadm", "its disk is filled", "it runs at", "kubeadm: the API server is ready", "a Deployment's pod runs",
		"of at most 3: sno-render", "sno-render took", "sno-render: the API server is ready", "objects are created",
	} {
		t.Run(line, func(t *testing.T) { interrupt(t, e, line) })
	}
}

func interrupt(t *testing.T, e engine.Engine, line string) {
	before, folder := resources(t, e), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.CommandContext(t.Context(), self, "-name="+testMachine)
	// A terminal sends the signal to its whole process group.
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	program.Env = append(os.Environ(), selfEnv+"=1", "TMPDIR="+folder)
	output, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-program.Process.Pid, syscall.SIGKILL) })
	var all []string
	var interrupted time.Time
	for lines := bufio.NewScanner(output); lines.Scan(); {
		all = append(all, lines.Text())
		if interrupted.IsZero() && strings.Contains(lines.Text(), line) {
			interrupted = time.Now()
			if err := syscall.Kill(-program.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = program.Wait()
	exit := &exec.ExitError{}
	if !errors.As(err, &exit) || exit.ExitCode() != 130 || interrupted.IsZero() || !slices.Contains(all, "sno-node: interrupted") {
		t.Fatalf("it ended with %v, and printed:\n%s", err, strings.Join(all, "\n"))
	}
	if took := time.Since(interrupted); took > endLimit {
		t.Errorf("ended only %s after the interruption", took)
	}
	if diff := cmp.Diff(before, resources(t, e)); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// resources returns the test's resources in the engine.
func resources(t *testing.T, e engine.Engine) map[string]string {
	t.Helper()
	found := map[string]string{}
	for what, args := range map[string][]string{
		"containers": {"ps", "--all", "--format", "{{.Names}}"},
		"volumes":    {"volume", "ls", "--format", "{{.Name}}"},
		"networks":   {"network", "ls", "--format", "{{.Name}}"},
	} {
		out, err := e.Output(t.Context(), append(args, "--filter", "name="+testMachine)...)
		if err != nil {
			t.Fatal(err)
		}
		found[what] = out
	}
	return found
}
