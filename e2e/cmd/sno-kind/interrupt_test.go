// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/testcluster/assets"
	"github.com/solonode/sno/testcluster/engine"
	"github.com/solonode/sno/testcluster/nodeimage"
)

const (
	// interruptEnv makes the test binary the program. Its value is a folder. It identifies the processes of a case, which
	// inherit it.
	interruptEnv = "SNO_TEST_INTERRUPT"
	// wantedEnv is set by make.
	wantedEnv = "SNO_E2E_KIND_INTERRUPT"
	// phaseLimit bounds the wait for a phase and for the end after it.
	phaseLimit  = 6 * time.Minute
	testCluster = "interrupted"
)

func TestMain(m *testing.M) {
	if os.Getenv(interruptEnv) != "" {
		os.Exit(start())
	}
	os.Exit(m.Run())
}

// Ctrl-C in every phase leaves nothing behind: no container, volume, network or image, no kubeconfig, no file, no
// process.
func TestInterrupted(t *testing.T) {
	if os.Getenv(wantedEnv) == "" {
		t.Skip("clusters of real kubelets take minutes: make e2e-kind-interrupt")
	}
	e, err := engine.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The image of a node is cached.
	if _, _, err := nodeimage.Ensure(t.Context(), e, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []struct {
		name, line string
		args       []string
	}{
		{"build", "a cluster of real kubelets for", []string{"-one"}},
		{"nodes", "Preparing nodes", []string{"-one"}},
		{"control-plane", "Starting control-plane", []string{"-one"}},
		{"objects", "is up: export KUBECONFIG", []string{"-one"}},
		{"rest", "waiting for the controllers to settle", []string{"-one"}},
		{"later-workers", "the later workers join", []string{"-one"}},
		{"suite", "the conformance suite", []string{"-one"}},
		{"experiment", "rollouts: ", []string{"-one", "-no-suite", "-experiments=rollouts"}},
		{"balancer", "Making a load balancer", []string{"-one", "-no-suite", "-experiments=etcd-guard"}},
		{"two-clusters", testCluster + ": waiting for the controllers to settle", []string{"-no-suite", "-experiments=rollouts,join"}},
	} {
		t.Run(phase.name, func(t *testing.T) {
			before := resources(t, e)
			folder := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 2*phaseLimit)
			defer cancel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			program := exec.CommandContext(ctx, self, append([]string{"-name=" + testCluster, "-tiers=static"}, phase.args...)...)
			// A terminal sends the signal to its whole process group.
			program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			program.Env = append(os.Environ(), interruptEnv+"="+folder, "TMPDIR="+folder)
			out := &watched{line: phase.line, seen: make(chan struct{})}
			program.Stdout, program.Stderr = out, out
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- program.Wait() }()
			select {
			case <-out.seen:
			case err := <-ended:
				t.Fatalf("it ended before it printed %q: %v\n%s", phase.line, err, out)
			}
			interrupted := time.Now()
			if err := syscall.Kill(-program.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			err = <-ended
			t.Logf("ended %s after the interruption", time.Since(interrupted).Round(time.Millisecond))
			exit := &exec.ExitError{}
			if !errors.As(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(out.String(), "sno-kind: interrupted") {
				t.Errorf("it ended with %v and does not report the interruption:\n%s", err, out)
			}
			if diff := cmp.Diff(before, resources(t, e)); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
			if left := processes(t, interruptEnv+"="+folder); len(left) > 0 {
				t.Errorf("processes are left: %q", left)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("files are left: %v, %v", left, err)
			}
		})
	}
}

// resources returns everything in the engine, and the kubeconfig files of clusters. The cache of builds is not
// included.
func resources(t *testing.T, e engine.Engine) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for what, args := range map[string][]string{
		"containers": {"ps", "--all", "--format", "{{.Names}}"},
		"volumes":    {"volume", "ls", "--quiet"},
		"networks":   {"network", "ls", "--format", "{{.Name}}"},
		"images":     {"image", "ls", "--all", "--no-trunc", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}"},
	} {
		out, err := e.Output(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		found[what] = slices.Sorted(strings.Lines(out))
	}
	cache, err := assets.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if found["kubeconfigs"], err = filepath.Glob(filepath.Join(filepath.Dir(cache), "kind", "*.kubeconfig*")); err != nil {
		t.Fatal(err)
	}
	return found
}

// processes returns the command lines of the processes with this variable.
func processes(t *testing.T, variable string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		// Processes that end meanwhile or belong to other users cannot be read.
		text, _ := os.ReadFile(file)
		if slices.Contains(strings.Split(string(text), "\x00"), variable) {
			called, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, strings.ReplaceAll(string(called), "\x00", " "))
		}
	}
	return found
}

// watched stores the output and closes seen when a line appears.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	line string
	seen chan struct{}
	once sync.Once
}

func (w *watched) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(text)
	for scan := bufio.NewScanner(bytes.NewReader(w.text.Bytes())); scan.Scan(); {
		if strings.Contains(scan.Text(), w.line) {
			w.once.Do(func() { close(w.seen) })
			break
		}
	}
	return len(text), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
