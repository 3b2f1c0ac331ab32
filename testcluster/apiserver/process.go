// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// timeout is for the end of a process after SIGTERM.
const timeout = time.Minute

// asProgram makes the test binary run the tested program.
const asProgram = "SNO_TEST_AS_PROGRAM"

// MaybeRunProgram is called first in TestMain. In a process of Command or StartProgram it runs the program and exits.
func MaybeRunProgram(program func(args []string) int) {
	if os.Getenv(asProgram) != "" {
		os.Exit(program(os.Args[1:]))
	}
}

// Command returns the program of MaybeRunProgram, with its output to out.
func Command(out io.Writer, args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asProgram+"=yes")
	command.Stdout, command.Stderr = out, out
	return command
}

// Process is a running controller.
type Process struct {
	t               testing.TB
	command         *exec.Cmd
	output          string // a file
	health, metrics string
	ended           chan struct{}
	err             error
	stopped         bool
}

// StartProgram starts the controller of MaybeRunProgram with plain metrics, until the test ends. A failed test logs its
// output.
func StartProgram(t testing.TB, args ...string) *Process {
	t.Helper()
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	NoError(t, err)
	p := &Process{t: t, ended: make(chan struct{}), output: output.Name(), health: FreeAddress(t), metrics: FreeAddress(t)}
	p.command = Command(output, append([]string{
		"--health-probe-bind-address=" + p.health, "--metrics-bind-address=" + p.metrics, "--metrics-secure=false", "-v=2",
	}, args...)...)
	NoError(t, p.command.Start())
	go func() {
		p.err = errors.Join(p.command.Wait(), output.Close())
		close(p.ended)
	}()
	t.Cleanup(func() {
		if !p.stopped {
			p.Stop()
		}
		if t.Failed() {
			t.Logf("output of the controller:\n%s", p.Logs())
		}
	})
	return p
}

// FreeAddress returns a local address on which no process listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NoError(t, err)
	defer listener.Close() //nolint:errcheck // only the address is used
	return listener.Addr().String()
}

// Stop ends the process with SIGTERM, and fails the test unless the exit code is 0.
func (p *Process) Stop() {
	p.t.Helper()
	p.stopped = true
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("stopping the controller: %v", err)
	}
	select {
	case <-p.ended:
	case <-time.After(timeout):
		p.t.Errorf("the controller does not stop")
		_ = p.command.Process.Kill() // it may have ended by itself
		<-p.ended
	}
	if p.err != nil {
		p.t.Errorf("the controller ended with %v", p.err)
	}
	for _, bad := range []string{"DATA RACE", "panic:", "Observed a panic"} {
		if strings.Contains(p.Logs(), bad) {
			p.t.Errorf("the controller's output has %q", bad)
		}
	}
}

// Kill ends the process with SIGKILL.
func (p *Process) Kill() {
	p.t.Helper()
	p.stopped = true
	NoError(p.t, p.command.Process.Kill())
	<-p.ended
}

// Ended reports whether and how the process has ended.
func (p *Process) Ended() (bool, error) {
	select {
	case <-p.ended:
		return true, p.err
	default:
		return false, nil
	}
}

// WaitForEnd waits until the output contains the text and the process has ended by itself, and fails the test unless
// the exit code is 0.
func (p *Process) WaitForEnd(text string) {
	p.t.Helper()
	p.WaitForLog(text)
	p.stopped = true
	select {
	case <-p.ended:
		NoError(p.t, p.err)
	case <-time.After(timeout):
		p.stopped = false
		p.t.Fatalf("the controller does not end by itself")
	}
}

// Logs returns the output of the process so far.
func (p *Process) Logs() string {
	p.t.Helper()
	text, err := os.ReadFile(p.output)
	NoError(p.t, err)
	return string(text)
}

// WaitForLog waits until the output contains the text.
func (p *Process) WaitForLog(text string) {
	p.t.Helper()
	Eventually(p.t, fmt.Sprintf("the log has %q", text), func() error {
		if !strings.Contains(p.Logs(), text) {
			return errors.New("not yet")
		}
		return nil
	})
}

// Ready waits until the process is ready.
func (p *Process) Ready() {
	p.t.Helper()
	Eventually(p.t, "the controller is ready", func() error {
		if ended, err := p.Ended(); ended {
			p.t.Fatalf("the controller ended: %v", err)
		}
		code, body, err := p.Probe("/readyz?verbose")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("%d %s %w", code, body, err)
		}
		return nil
	})
}

// Probe gets /healthz or /readyz and returns the status code and the body.
func (p *Process) Probe(path string) (int, string, error) { return get("http://" + p.health + path) }

func get(url string) (int, string, error) {
	answer, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// Metric returns the sum of the samples of a metric with the labels, each written like name="ingress".
func (p *Process) Metric(name string, labels ...string) (float64, error) {
	code, body, err := get("http://" + p.metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	if code != http.StatusOK {
		return 0, fmt.Errorf("/metrics answers %d", code)
	}
	return sum(body, name, labels...)
}

func sum(metrics, name string, labels ...string) (float64, error) {
	total := 0.0
	for line := range strings.Lines(metrics) {
		line = strings.TrimSpace(line)
		all := strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ")
		for _, label := range labels {
			all = all && strings.Contains(line, label)
		}
		if !all {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("the metric %s: %w", name, err)
		}
		total += value
	}
	return total, nil
}

// HasMetric returns a check that Metric has the value.
func (p *Process) HasMetric(want float64, name string, labels ...string) func() error {
	return func() error {
		got, err := p.Metric(name, labels...)
		if err == nil && got != want {
			err = fmt.Errorf("%s%v is %v, want %v", name, labels, got, want)
		}
		return err
	}
}

// ReconcilesAfter makes n numbered changes, and waits after each until the controller has reconciled and is idle.
func (p *Process) ReconcilesAfter(n int, controller string, change func(number int)) {
	p.t.Helper()
	for i := range n {
		before, err := p.Metric("controller_runtime_reconcile_total")
		NoError(p.t, err)
		change(int(before)*1000 + i)
		Eventually(p.t, "the controller has reconciled", func() error {
			after, err := p.Metric("controller_runtime_reconcile_total")
			if err == nil && after <= before {
				err = fmt.Errorf("%v reconciles, as before", after)
			}
			return err
		})
		Eventually(p.t, "the controller is idle", p.HasMetric(0, "controller_runtime_active_workers"))
		Eventually(p.t, "its queue is empty", p.HasMetric(0, "workqueue_depth", `name="`+controller+`"`))
	}
}
