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
	// ReportFile is the file in its folder in which a child leaves its report.
	ReportFile = "report.json"
	// LogFile is the one that has everything it said.
	LogFile = "run.log"

	// grace is how long a child that was asked to end may take to clean up.
	grace   = 40 * time.Second
	logTail = 1500
)

var (
	// ErrNoReport says that a child ended and left no report.
	ErrNoReport = errors.New("the run of this scenario ended without a report")
	// ErrTooLong says that a child took longer than it may.
	ErrTooLong = errors.New("the run of this scenario took too long")
	// ErrInterrupted says that a person ended the run before the child was done.
	ErrInterrupted = errors.New("the run was interrupted")
)

// Run says what to run.
type Run struct {
	// Scenarios are the names of the clusters. The reports come in this order, whatever ends first.
	Scenarios []string
	// Parallel is how many run at a time, at least 1.
	Parallel int
	// Limit is how long one of them may take.
	Limit time.Duration
	// Folder gets a folder for each scenario.
	Folder string
	// Command makes the child for a scenario. It leaves its report in the file ReportFile of the folder, ends tidily on SIGTERM, and ends
	// when its standard input does: then nobody waits for it any more.
	Command func(scenario, folder string) *exec.Cmd
	// Lost is the report of a scenario whose child left none, with every check failed for that reason.
	Lost func(scenario, reason string) report.Report
	// Progress gets a line when something starts and ends.
	Progress io.Writer
}

// All runs every scenario and returns a report for each. When the context ends, the children are asked to end, and what they had not done
// is lost; the error is then ErrInterrupted. Other errors are about the folder.
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
	// A report of an earlier run must not be taken for one of this.
	if err := os.Remove(filepath.Join(folder, ReportFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return report.Report{}, fmt.Errorf("remove the old report of %s: %w", scenario, err)
	}
	if ctx.Err() != nil {
		return r.Lost(scenario, ErrInterrupted.Error()), nil
	}
	started := time.Now()
	progress.started(scenario)
	cpu, err := r.child(ctx, scenario, folder)
	found, failure := r.result(ctx, scenario, folder, err)
	progress.finished(scenario, found, failure, time.Since(started), cpu)
	return found, nil
}

// child runs the child and returns the time that it, and what it started, took of the processors.
func (r Run) child(ctx context.Context, scenario, folder string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	log, err := os.Create(filepath.Join(folder, LogFile))
	if err != nil {
		return 0, fmt.Errorf("make the log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child has written it
	planned := r.Command(scenario, folder)
	cmd := exec.CommandContext(ctx, planned.Path, planned.Args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = planned.Env, log, log
	// Ctrl-C on the terminal is for this process, which passes it on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	hold, err := cmd.StdinPipe() // nothing is ever written to it; it ends when this process does
	if err != nil {
		return 0, fmt.Errorf("make the pipe of the child: %w", err)
	}
	defer hold.Close() //nolint:errcheck // the child is gone
	err = errors.Join(cmd.Run(), ctx.Err())
	if state := cmd.ProcessState; state != nil {
		return state.UserTime() + state.SystemTime(), err
	}
	return 0, err
}

// result reads what the child left. Whoever was interrupted or took too long may still have left a report, which counts if it is whole.
func (r Run) result(ctx context.Context, scenario, folder string, ended error) (report.Report, error) {
	found, err := report.ReadFiles(filepath.Join(folder, ReportFile))
	if err == nil && len(found) == 1 && found[0].Scenario == scenario {
		return found[0], nil
	}
	why := ErrNoReport
	switch {
	case ctx.Err() != nil:
		why = ErrInterrupted
	case errors.Is(ended, context.DeadlineExceeded):
		why = ErrTooLong
	}
	if !errors.Is(err, os.ErrNotExist) {
		why = errors.Join(why, err)
	}
	return r.Lost(scenario, strings.SplitN(why.Error(), "\n", 2)[0]), fmt.Errorf("%w: %w\n%s", why, ended, tail(filepath.Join(folder, LogFile)))
}

// tail is the end of a log, each line indented.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "    " + err.Error()
	}
	text := strings.TrimSpace(string(content[max(0, len(content)-logTail):]))
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// progress prints a line at a time, with aligned columns.
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
	// Progress that cannot be written is missed by nobody.
	_, _ = fmt.Fprintf(p.out, "%s  %-*s  %s\n", time.Now().Format(time.TimeOnly), p.width, scenario, text)
}
