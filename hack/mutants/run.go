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
	"runtime"
	"strings"
	"sync"
	"time"
)

// ErrNotCaught is returned by Run when a mutant survived or does not apply.
var ErrNotCaught = errors.New("not every mutant is caught")

var errSurvived = errors.New("survived")

// trial is an entry of the module in dir, an absolute path. The names of its own files begin with scratch.
type trial struct {
	Entry
	dir, scratch string
}

func (t trial) name() string { return filepath.Base(t.dir) + "/" + t.Name }

// Run tries the mutants of the modules in dirs whose "module/name" matches, as many at a time as there are processors.
// It prints a row for each as it ends, then what is to know of those that were not caught, and a total.
func Run(ctx context.Context, dirs []string, only *regexp.Regexp, out io.Writer) (err error) {
	scratch, err := os.MkdirTemp("", "sno-mutants-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	trials, err := selected(dirs, only, scratch)
	if err != nil {
		return err
	}

	var (
		printing  sync.Mutex
		baselines sync.Map
		details   strings.Builder
		caught    int
		running   sync.WaitGroup
		slots     = make(chan struct{}, runtime.NumCPU())
	)
	for _, t := range trials {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			start := time.Now()
			err := t.try(ctx, &baselines)
			if ctx.Err() != nil {
				return
			}
			printing.Lock()
			defer printing.Unlock()
			outcome := "DOES NOT APPLY"
			switch {
			case err == nil:
				outcome = "caught"
				caught++
			case errors.Is(err, errSurvived):
				outcome = "SURVIVED"
			}
			if err != nil {
				fmt.Fprintf(&details, "\n%s: %v\n", t.name(), err)
			}
			_, _ = fmt.Fprintf(out, "%-14s  %5.1f s  %s\n", outcome, time.Since(start).Seconds(), t.name())
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, err := fmt.Fprintf(out, "%s\n%d of %d mutants are caught\n", &details, caught, len(trials)); err != nil {
		return err
	}
	if caught < len(trials) {
		return ErrNotCaught
	}
	return nil
}

func selected(dirs []string, only *regexp.Regexp, scratch string) ([]trial, error) {
	var trials []trial
	for _, dir := range dirs {
		file := filepath.Join(dir, FileName)
		entries, err := Read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, entry := range entries {
			t := trial{Entry: entry, dir: dir, scratch: filepath.Join(scratch, fmt.Sprint(len(trials)))}
			if only.MatchString(t.name()) {
				trials = append(trials, t)
			}
		}
	}
	if len(trials) == 0 {
		return nil, fmt.Errorf("no mutant matches %s", only)
	}
	return trials, nil
}

// try returns nil if the mutant is caught.
func (t trial) try(ctx context.Context, baselines *sync.Map) error {
	mutated, err := t.mutate(t.dir)
	if err != nil {
		return err
	}
	once := sync.OnceValue(func() error { return t.passes(ctx) })
	baseline, _ := baselines.LoadOrStore([3]string{t.dir, filepath.Clean(t.Package), t.Test}, once)
	if err := baseline.(func() error)(); err != nil {
		return err
	}
	file, list := t.scratch+".go", t.scratch+".json"
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(t.dir, t.File): file}})
	err = errors.Join(err, os.WriteFile(file, []byte(mutated), 0o600), os.WriteFile(list, overlay, 0o600))
	if err != nil {
		return err
	}
	output, err := t.goTest(ctx, "-overlay="+list)
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s passes; %s", errSurvived, t.Test, t.Why)
	case !failed.MatchString(output):
		return fmt.Errorf("%w: the test does not compile or run:\n%s", ErrDoesNotApply, tail(output))
	}
	return nil
}

var (
	// passed matches the output of a test that is not skipped.
	passed = regexp.MustCompile(`(?m)^\s*--- PASS: `)
	// failed matches the output of a test program that ran, unlike "FAIL PACKAGE [build failed]".
	failed = regexp.MustCompile(`(?m)^FAIL\t\S+\t[0-9.]+s$`)
)

// passes verifies that the test exists and passes without the mutation.
func (t trial) passes(ctx context.Context) error {
	output, err := t.goTest(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the test fails without the mutation: %w\n%s", ErrDoesNotApply, err, tail(output))
	case !passed.MatchString(output):
		return fmt.Errorf("%w: -run %q runs no test in %s, or skips it", ErrDoesNotApply, t.Test, t.Package)
	}
	return nil
}

func (t trial) goTest(ctx context.Context, flags ...string) (string, error) {
	args := append([]string{"test", "-vet=off", "-ldflags=-s", "-v", "-failfast", "-timeout=5m", "-run=" + t.Test}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+filepath.ToSlash(filepath.Clean(t.Package)))...)
	cmd.Dir = t.dir
	cmd.WaitDelay = 30 * time.Second // to stop its API server
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func tail(output string) string {
	const most = 25
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-most):], "\n\t")
}
