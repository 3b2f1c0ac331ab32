package patchtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test binary be the program that it tests, so that flags, signals and permissions are real.
const asProgram = "SNO_TEST_AS_PROGRAM"

// BeProgram is called first in TestMain: in a process that Command or Start made it runs the program and exits with what that
// returns, in any other it does nothing.
func BeProgram(program func(args []string) int) {
	if os.Getenv(asProgram) != "" {
		os.Exit(program(os.Args[1:]))
	}
}

// Command is the program of BeProgram with these arguments. out gets what it says, on both streams.
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
	output          output
	health, metrics string
	ended           chan struct{}
	err             error
	stopped         bool
}

// output is what a process says. It may be read while the process runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start starts the program of BeProgram, a controller with the flags of patch/manager, with plain metrics on an address of its own.
// It is stopped when the test ends, and what it said is logged if the test failed.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, ended: make(chan struct{}), health: FreeAddress(t), metrics: FreeAddress(t)}
	p.command = Command(&p.output, append([]string{
		"--health-probe-bind-address=" + p.health, "--metrics-bind-address=" + p.metrics, "--metrics-secure=false", "-v=2",
	}, args...)...)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		if !p.stopped {
			p.Stop()
		}
		if t.Failed() {
			t.Logf("the controller said:\n%s", &p.output)
		}
	})
	return p
}

// FreeAddress is an address of this machine on which nobody listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the address is all that was wanted
	return listener.Addr().String()
}

// Stop ends the process as a node does, with SIGTERM, and expects it to end in good order.
func (p *Process) Stop() {
	p.t.Helper()
	p.stopped = true
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("stopping the controller: %v", err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Errorf("the controller does not stop")
		_ = p.command.Process.Kill() // it may end by itself just now
		<-p.ended
	}
	if p.err != nil {
		p.t.Errorf("the controller ended with %v", p.err)
	}
	for _, bad := range []string{"DATA RACE", "panic:", "Observed a panic"} {
		if strings.Contains(p.Said(), bad) {
			p.t.Errorf("the controller's output has %q", bad)
		}
	}
}

// Kill ends the process as the kernel or a lost node does, with SIGKILL.
func (p *Process) Kill() {
	p.t.Helper()
	p.stopped = true
	if err := p.command.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	<-p.ended
}

// Ended says whether the process has ended, and how.
func (p *Process) Ended() (bool, error) {
	select {
	case <-p.ended:
		return true, p.err
	default:
		return false, nil
	}
}

// Said is what the process said so far.
func (p *Process) Said() string { return p.output.String() }

// Says waits until the process has said the text.
func (p *Process) Says(text string) {
	p.t.Helper()
	Eventually(p.t, fmt.Sprintf("the log says %q", text), func() error {
		if !strings.Contains(p.Said(), text) {
			return errors.New("it does not")
		}
		return nil
	})
}

// Ready waits until the process says that it is ready.
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

// Probe asks /healthz or /readyz and returns the status code and the answer.
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

// Metric adds up the samples of a metric that have all the labels, each written like name="ingress".
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
	for lines := bufio.NewScanner(strings.NewReader(metrics)); lines.Scan(); {
		line := lines.Text()
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

// Counts is a check for Eventually: Metric has the value.
func (p *Process) Counts(want float64, name string, labels ...string) func() error {
	return func() error {
		got, err := p.Metric(name, labels...)
		if err == nil && got != want {
			err = fmt.Errorf("%s%v is %v, want %v", name, labels, got, want)
		}
		return err
	}
}

// LooksAfter makes the change n times, and waits each time until the named controller has looked at it and is idle again. The
// change gets a number that is another one each time, also in the next call.
func (p *Process) LooksAfter(n int, controller string, change func(beat int)) {
	p.t.Helper()
	for i := range n {
		before, err := p.Metric("controller_runtime_reconcile_total")
		if err != nil {
			p.t.Fatal(err)
		}
		change(int(before)*1000 + i)
		Eventually(p.t, "the controller has looked", func() error {
			after, err := p.Metric("controller_runtime_reconcile_total")
			if err == nil && after <= before {
				err = fmt.Errorf("%v reconciles, as before", after)
			}
			return err
		})
		Eventually(p.t, "the controller is idle", p.Counts(0, "controller_runtime_active_workers"))
		Eventually(p.t, "its queue is empty", p.Counts(0, "workqueue_depth", `name="`+controller+`"`))
	}
}
