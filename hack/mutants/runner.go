// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/solonode/sno/hack/workspace"
)

var errSurvived = errors.New("survived")

// ErrNoneSelected is returned when Only matches no mutant.
var ErrNoneSelected = errors.New("no mutant matches")

// testTimeout bounds one run of one test binary. A test that hangs because of a mutation panics, and counts as failed.
const testTimeout = 5 * time.Minute

const stopGrace = 30 * time.Second

// Runner tries mutants.
type Runner struct {
	Workspace *workspace.Workspace
	// Scratch is an empty folder that the caller removes.
	Scratch  string
	Parallel int
	// Only selects mutants by "module/name"; nil selects all.
	Only     *regexp.Regexp
	Progress io.Writer
	// Cache has the mutants that were caught before and receives those that are caught now; it may be nil. Fresh tries all
	// the same.
	Cache *Cache
	Fresh bool
	// Order decides the order of the trials, so that successive runs within a budget cover all mutants.
	Order uint64
	// Budget is how long new mutants are started; zero means no limit.
	Budget time.Duration

	now       func() time.Time
	started   time.Time
	keyer     *keyer
	mutex     sync.Mutex
	baselines map[string]func() error
	binaries  map[string]func() (string, error)
}

// Run tries the selected entries of the modules and returns the results in the order of the files.
func (r *Runner) Run(ctx context.Context, modules []workspace.Module) ([]Result, error) {
	r.baselines, r.binaries = map[string]func() error{}, map[string]func() (string, error){}
	if r.now == nil {
		r.now = time.Now
	}
	r.started = r.now()
	jobs, err := r.jobs(modules)
	if err != nil {
		return nil, err
	}
	left, err := r.recall(ctx, jobs)
	if err != nil {
		return nil, err
	}
	r.tryAll(ctx, left)
	results := make([]Result, len(jobs))
	for i, j := range jobs {
		results[i] = j.result
	}
	return results, ctx.Err()
}

func (r *Runner) try(ctx context.Context, j *job) {
	how := r.tryTest
	if len(j.entry.Command) > 0 {
		how = r.tryCommand
	}
	start := time.Now()
	err := how(ctx, j.module, j.entry, filepath.Join(r.Scratch, fmt.Sprintf("mutant-%d", j.number)))
	j.result = resultOf(j.module.Name(), j.entry, err, time.Since(start))
	r.progress("%-14s  %s (%.1f s)\n", j.result.Outcome, j.name(), j.result.Took.Seconds())
	if err := r.remember(ctx, j); err != nil && ctx.Err() == nil {
		r.progress("%s is not cached: %v\n", j.name(), err)
	}
}

func (r *Runner) progress(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, _ = fmt.Fprintf(r.Progress, format, args...) // a closed screen must not stop the run
}

func (r *Runner) tryTest(ctx context.Context, m workspace.Module, entry Entry, scratch string) error {
	mutated, err := entry.mutate(r.Workspace.Path(m.Dir))
	if err != nil {
		return err
	}
	if err := r.testBaseline(ctx, m, entry); err != nil {
		return err
	}
	overlay, err := writeOverlay(scratch, r.Workspace.Path(m.Dir+"/"+entry.File), mutated)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // the caller removes the whole scratch folder
	binary := filepath.Join(scratch, "mutated.test")
	if err := r.compile(ctx, m, entry, binary, "-overlay="+overlay); err != nil {
		return err
	}
	_, output, err := r.runTest(ctx, m, entry, binary)
	return judge(entry, output, err)
}

func writeOverlay(folder, original, mutated string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	source := filepath.Join(folder, "mutated.go")
	if err := os.WriteFile(source, []byte(mutated), 0o644); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: source}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o644)
}

// testBaseline checks, once per package and test, that the test exists and passes without the mutation.
func (r *Runner) testBaseline(ctx context.Context, m workspace.Module, entry Entry) error {
	folder := m.Dir + "/" + entry.packageDir()
	r.mutex.Lock()
	if r.binaries[folder] == nil {
		binary := filepath.Join(r.Scratch, fmt.Sprintf("baseline-%d.test", len(r.binaries)))
		r.binaries[folder] = sync.OnceValues(func() (string, error) { return binary, r.compile(ctx, m, entry, binary) })
	}
	compiled := r.binaries[folder]
	key := folder + "\n" + entry.Test
	if r.baselines[key] == nil {
		r.baselines[key] = sync.OnceValue(func() error {
			binary, err := compiled()
			if err != nil {
				return fmt.Errorf("without the mutation: %w", err)
			}
			ran, output, err := r.runTest(ctx, m, entry, binary)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return fmt.Errorf("%w: the test fails without the mutation:\n%s", ErrDoesNotApply, tail(output))
			case ran == 0:
				return fmt.Errorf("%w: -run %q runs no test in %s", ErrDoesNotApply, entry.Test, folder)
			}
			return nil
		})
	}
	baseline := r.baselines[key]
	r.mutex.Unlock()
	return baseline()
}

func (r *Runner) compile(ctx context.Context, m workspace.Module, entry Entry, binary string, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}, flags...)
	cmd := r.Workspace.Command(ctx, m.Dir, r.Workspace.Environment(m), "go", append(args, "./"+entry.packageDir())...)
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%w: does not compile:\n%s", ErrDoesNotApply, tail(string(output)))
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("%w: package %s has no tests", ErrDoesNotApply, entry.Package)
	}
	return nil
}

// passed matches the output of a verbose test binary for each test that passed; a skipped test proves nothing.
var passed = regexp.MustCompile(`(?m)^\s*--- PASS: `)

func (r *Runner) runTest(ctx context.Context, m workspace.Module, entry Entry, binary string) (int, string, error) {
	args := []string{"-test.v", "-test.run=" + entry.Test, "-test.timeout=" + testTimeout.String()}
	if entry.Output == "" { // otherwise the required output may be that of a later failure
		args = append(args, "-test.failfast")
	}
	cmd := r.Workspace.Command(ctx, m.Dir+"/"+entry.packageDir(), r.Workspace.Environment(m), binary, args...)
	cmd.WaitDelay = stopGrace
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	output, err := cmd.CombinedOutput()
	return len(passed.FindAllIndex(output, -1)), string(output), err
}

// judge converts the end of a test or command with the mutation into nil (caught) or an error.
func judge(entry Entry, output string, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return errSurvived
	case !errors.As(err, &exit) || !exit.Exited():
		return fmt.Errorf("%w: it did not run to its end: %w\n%s", ErrDoesNotApply, err, tail(output))
	case entry.Output != "" && !regexp.MustCompile(entry.Output).MatchString(output):
		return fmt.Errorf("%w: it failed, but its output does not match %q:\n%s", ErrDoesNotApply, entry.Output, tail(output))
	}
	return nil
}

func tail(output string) string {
	const most = 25
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if len(lines) > most {
		lines = append([]string{"..."}, lines[len(lines)-most:]...)
	}
	return "\t" + strings.Join(lines, "\n\t")
}
