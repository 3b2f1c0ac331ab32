// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solonode/sno/conformance/report"
)

const (
	// ReportFile is the file in its folder to which a child writes its report.
	ReportFile = "report.json"
	// LogFile has its output.
	LogFile = "run.log"

	// grace is how long a terminated child may take to clean up.
	grace   = 40 * time.Second
	logTail = 1500
)

var (
	// ErrNoReport means that a child ended without a report.
	ErrNoReport = errors.New("the run of this scenario ended without a report")
	// ErrTooLong means that a child exceeded the limit.
	ErrTooLong = errors.New("the run of this scenario took too long")
	// ErrInterrupted means that the run was interrupted before the child had finished.
	ErrInterrupted = errors.New("the run was interrupted")
)

// Run describes what to run.
type Run struct {
	// Scenarios are the names of the clusters, and the order of the reports.
	Scenarios []string
	Parallel  int
	Limit     time.Duration
	// Folder has a folder for each scenario.
	Folder string
	// Command returns the child for a scenario. It writes its report to ReportFile in the folder, cleans up on SIGTERM,
	// and ends when its standard input does: then the parent has ended.
	Command func(scenario, folder string) *exec.Cmd
	// Lost returns the report of a scenario without one. Every check that was to run has the status and the reason.
	Lost func(scenario string, status report.Status, reason string) report.Report
	// Progress receives a line for each start and end.
	Progress io.Writer
}

// All runs every scenario and returns a report for each (R-SUITE-5: those in a cloud with added workers are scenarios).
// When the context ends it terminates the children, reports what they had not finished as inconclusive, and returns
// ErrInterrupted. Other errors are about the folder.
func (r Run) All(ctx context.Context) ([]report.Report, error) {
	progress := newProgress(r.Progress, r.Scenarios)
	reports := make([]report.Report, len(r.Scenarios))
	var group errgroup.Group
	group.SetLimit(max(r.Parallel, 1))
	for i, scenario := range r.Scenarios {
		group.Go(func() error {
			var err error
			reports[i], err = r.one(ctx, scenario, progress)
			return err
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		err = errors.Join(ErrInterrupted, err)
	}
	return reports, err
}

// one runs one scenario. The error is about the folder only.
func (r Run) one(ctx context.Context, scenario string, progress *progress) (report.Report, error) {
	folder := filepath.Join(r.Folder, scenario)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return report.Report{}, fmt.Errorf("make the folder of %s: %w", scenario, err)
	}
	// The report of an earlier run must not count.
	if err := os.Remove(filepath.Join(folder, ReportFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return report.Report{}, fmt.Errorf("remove the old report of %s: %w", scenario, err)
	}
	if ctx.Err() != nil {
		return r.Lost(scenario, report.Inconclusive, ErrInterrupted.Error()), nil
	}
	started := time.Now()
	progress.started(scenario)
	cpu, err := r.child(ctx, scenario, folder)
	found, failure := r.result(ctx, scenario, folder, err)
	progress.finished(scenario, found, failure, time.Since(started), cpu)
	return found, nil
}

// child runs the child and returns the processor time of it and its children.
func (r Run) child(ctx context.Context, scenario, folder string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	log, err := os.Create(filepath.Join(folder, LogFile))
	if err != nil {
		return 0, fmt.Errorf("make the log: %w", err)
	}
	defer log.Close() //nolint:errcheck // only the child writes to it
	planned := r.Command(scenario, folder)
	cmd := exec.CommandContext(ctx, planned.Path, planned.Args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = planned.Env, log, log
	// The child does not get the terminal's SIGINT, but SIGTERM from this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	hold, err := cmd.StdinPipe() // ends with this process
	if err != nil {
		return 0, fmt.Errorf("make the pipe of the child: %w", err)
	}
	defer hold.Close() //nolint:errcheck // the child has ended
	err = errors.Join(cmd.Run(), ctx.Err())
	if state := cmd.ProcessState; state != nil {
		return state.UserTime() + state.SystemTime(), err
	}
	return 0, err
}

// result reads the child's report. It also counts after an interruption or the limit, if it is complete.
func (r Run) result(ctx context.Context, scenario, folder string, ended error) (report.Report, error) {
	found, err := report.ReadFiles(filepath.Join(folder, ReportFile))
	if err == nil && len(found) == 1 && found[0].Scenario == scenario {
		return found[0], nil
	}
	why, status := ErrNoReport, report.Failed
	switch {
	case ctx.Err() != nil:
		why, status = ErrInterrupted, report.Inconclusive
	case errors.Is(ended, context.DeadlineExceeded):
		why = ErrTooLong
	}
	if !errors.Is(err, os.ErrNotExist) {
		why = errors.Join(why, err)
	}
	return r.Lost(scenario, status, strings.SplitN(why.Error(), "\n", 2)[0]), fmt.Errorf("%w: %w\n%s", why, ended, tail(filepath.Join(folder, LogFile)))
}

func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "    " + err.Error()
	}
	text := strings.TrimSpace(string(content[max(0, len(content)-logTail):]))
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

type progress struct {
	mu    sync.Mutex
	out   io.Writer
	width int
	done  int
	all   int
}

func newProgress(out io.Writer, scenarios []string) *progress {
	p := &progress{out: out, all: len(scenarios)}
	for _, s := range scenarios {
		p.width = max(p.width, len(s))
	}
	return p
}

func (p *progress) started(scenario string) { p.line(scenario, "started") }

func (p *progress) finished(scenario string, r report.Report, failure error, took, cpu time.Duration) {
	p.mu.Lock()
	p.done++
	done := p.done
	p.mu.Unlock()
	counts := make([]string, 0, len(report.Statuses()))
	for _, status := range report.Statuses() {
		counts = append(counts, fmt.Sprintf("%3d %s", r.Counts[status], status))
	}
	p.line(scenario, fmt.Sprintf("%s  %6.1f s %6.1f s of CPU  %d/%d", strings.Join(counts, " "), took.Seconds(), cpu.Seconds(), done, p.all))
	if failure != nil {
		p.line(scenario, failure.Error())
	}
}

func (p *progress) line(scenario, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%s  %-*s  %s\n", time.Now().Format(time.TimeOnly), p.width, scenario, text)
}
