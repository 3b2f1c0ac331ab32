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
	// interruptEnv makes the test binary the program itself. What it starts inherits the value, a folder of its own, and is known by it.
	interruptEnv = "SNO_TEST_INTERRUPT"
	// wantedEnv is set by make.
	wantedEnv = "SNO_E2E_KIND_INTERRUPT"
	// phaseLimit bounds the wait for a phase and for the end after it.
	phaseLimit = 6 * time.Minute
	// testCluster is the name of the clusters that are interrupted.
	testCluster = "interrupted"
)

func TestMain(m *testing.M) {
	if os.Getenv(interruptEnv) != "" {
		os.Exit(start())
	}
	os.Exit(m.Run())
}

// Ctrl-C in every phase leaves nothing behind: no container, volume, network or image, no kubeconfig, no file, no process.
func TestInterrupted(t *testing.T) {
	if os.Getenv(wantedEnv) == "" {
		t.Skip("clusters of real kubelets take minutes: make e2e-kind-interrupt")
	}
	e, err := engine.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The image of a node is made to be kept.
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
		{"rest", "the controllers come to rest", []string{"-one"}},
		{"later-workers", "the later workers join", []string{"-one"}},
		{"suite", "the conformance suite", []string{"-one"}},
		{"experiment", "rollouts: ", []string{"-one", "-no-suite", "-experiments=rollouts"}},
		{"balancer", "Making a load balancer", []string{"-one", "-no-suite", "-experiments=etcd-guard"}},
		{"two-clusters", testCluster + ": the controllers come to rest", []string{"-no-suite", "-experiments=rollouts,join"}},
	} {
		t.Run(phase.name, func(t *testing.T) {
			before := ground(t, e)
			folder := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 2*phaseLimit)
			defer cancel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			program := exec.CommandContext(ctx, self, append([]string{"-name=" + testCluster, "-tiers=static"}, phase.args...)...)
			// A terminal sends the signal to all that run in it.
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
				t.Fatalf("it ended before it said %q: %v\n%s", phase.line, err, out)
			}
			interrupted := time.Now()
			if err := syscall.Kill(-program.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			err = <-ended
			t.Logf("gone %s after the interruption", time.Since(interrupted).Round(time.Millisecond))
			exit := &exec.ExitError{}
			if !errors.As(err, &exit) || exit.ExitCode() != 130 || !strings.Contains(out.String(), "sno-kind: interrupted") {
				t.Errorf("it ended with %v and does not say that it was interrupted:\n%s", err, out)
			}
			if diff := cmp.Diff(before, ground(t, e)); diff != "" {
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

// ground is all that there is in the engine, and the kubeconfig files of clusters. What is built is cached on purpose.
func ground(t *testing.T, e engine.Engine) map[string][]string {
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

// processes are those that have something in their environment, with what they were called by.
func processes(t *testing.T, variable string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		// What ends meanwhile, and what belongs to somebody else, cannot be read.
		text, _ := os.ReadFile(file)
		if slices.Contains(strings.Split(string(text), "\x00"), variable) {
			called, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, strings.ReplaceAll(string(called), "\x00", " "))
		}
	}
	return found
}

// watched keeps what is written and tells when a line has come.
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
