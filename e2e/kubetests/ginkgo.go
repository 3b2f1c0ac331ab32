// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"context"
	"encoding/json"
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
	"sync"
	"syscall"
	"time"

	"github.com/solonode/sno/testcluster/assets"
)

const (
	// reportName is the name that the framework of the tests chooses.
	reportName = "junit_01.xml"
	// stopDelay is for the tests to write their report after an interruption. The cluster is removed with their objects.
	stopDelay = 10 * time.Second
	// suiteTimeout is longer than all tests one after the other.
	suiteTimeout = 6 * time.Hour
	// progressEvery is the interval of progress without a failure.
	progressEvery = time.Minute
)

// ginkgo runs tests of e2e.test on a cluster.
type ginkgo struct {
	suite      assets.Assets
	kubectl    string
	kubeconfig string
	procs      int
	progress   io.Writer
}

// run runs tests, those that are Serial after the others. The folder receives the log and the report.
func (g ginkgo) run(ctx context.Context, folder string, tests []Test) (Results, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the report: %w", err)
	}
	log, err := os.Create(filepath.Join(folder, "e2e.log"))
	if err != nil {
		return nil, fmt.Errorf("make the log of the tests: %w", err)
	}
	defer func() { _ = log.Close() }()
	count := &counter{out: g.progress, total: len(tests), started: time.Now(), failed: map[string]bool{}}
	address, stop, err := count.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	cmd := exec.CommandContext(ctx, g.suite.Program("ginkgo"),
		"--procs="+strconv.Itoa(g.procs), "--timeout="+suiteTimeout.String(), "--no-color", "--silence-skips", "--focus="+focus(tests),
		g.suite.Program("e2e.test"), "--",
		"--provider=skeleton", "--kubeconfig="+g.kubeconfig, "--kubectl-path="+g.kubectl, "--disable-log-dump", "--report-dir="+folder,
		"--progress-report-url="+address)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
	cmd.Env = append(os.Environ(), "KUBECONFIG="+g.kubeconfig)
	// The group is for the processes of e2e.test, which outlive ginkgo.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopDelay
	failed := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run Kubernetes' tests: %w", ctx.Err())
	}
	file, err := os.Open(filepath.Join(folder, reportName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w: see %s", ErrReport, errors.Join(failed, err), log.Name())
	}
	defer func() { _ = file.Close() }()
	return ReadReport(file, tests)
}

// counter counts tests as e2e.test reports them, each process for itself.
type counter struct {
	out     io.Writer
	total   int
	started time.Time

	mu     sync.Mutex
	passed int
	failed map[string]bool
	last   time.Time
}

// serve returns the address that e2e.test sends its progress to.
func (c *counter) serve(ctx context.Context) (address string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the progress of the tests: %w", err)
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends by Close
	}()
	return "http://" + listener.Addr().String(), func() { _ = server.Close(); <-done }, nil
}

func (c *counter) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	var update struct {
		Message string `json:"msg"`
	}
	if json.NewDecoder(request.Body).Decode(&update) != nil {
		return
	}
	c.add(update.Message, time.Now())
}

func (c *counter) add(message string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, failed := strings.CutPrefix(message, "FAILED ")
	switch {
	case failed && !c.failed[name]:
		c.failed[name] = true
		fmt.Fprintf(c.out, "  failed: %s\n", name)
	case strings.HasPrefix(message, "PASSED "):
		c.passed++
	default:
		return
	}
	if now.Sub(c.last) >= progressEvery || c.passed+len(c.failed) == c.total {
		c.last = now
		fmt.Fprintf(c.out, "  %d of %d tests, %d failed, %s\n", c.passed+len(c.failed), c.total, len(c.failed), now.Sub(c.started).Round(time.Second))
	}
}
