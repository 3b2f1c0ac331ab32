// SPDX-License-Identifier: Apache-2.0

package kubetests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
	output := &counter{log: log, out: g.progress, total: len(tests), started: time.Now()}
	cmd := exec.CommandContext(ctx, g.suite.Program("ginkgo"),
		"--procs="+strconv.Itoa(g.procs), "--timeout="+suiteTimeout.String(), "--no-color", "--silence-skips", "--focus="+focus(tests),
		g.suite.Program("e2e.test"), "--",
		"--provider=skeleton", "--kubeconfig="+g.kubeconfig, "--kubectl-path="+g.kubectl, "--disable-log-dump", "--report-dir="+folder)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, output, output
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

// counter counts tests in the output of ginkgo, which it copies to the log. The progress that e2e.test can send has no
// results.
type counter struct {
	log, out     io.Writer
	total        int
	started      time.Time
	done, failed int
	last         time.Time
	rest         []byte
}

// Write never returns an error of the progress.
func (c *counter) Write(output []byte) (int, error) {
	c.count(output, time.Now())
	return c.log.Write(output) //nolint:wrapcheck // of a file
}

// count counts bullets. The mark of a failure follows its bullet, maybe in the next part of the output.
func (c *counter) count(output []byte, now time.Time) {
	const bullet, mark = "•", " [FAILED]"
	for c.rest = append(c.rest, output...); ; {
		_, after, found := bytes.Cut(c.rest, []byte(bullet))
		if !found {
			c.rest = c.rest[max(0, len(c.rest)-len(bullet)):]
			return
		}
		if len(after) < len(mark) && strings.HasPrefix(mark, string(after)) {
			return
		}
		c.rest = after
		c.done++
		failed := bytes.HasPrefix(after, []byte(mark))
		if failed {
			c.failed++
		}
		if failed || now.Sub(c.last) >= progressEvery || c.done == c.total {
			c.last = now
			fmt.Fprintf(c.out, "  %d of %d tests, %d failed, %s\n", c.done, c.total, c.failed, now.Sub(c.started).Round(time.Second))
		}
	}
}
