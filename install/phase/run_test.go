// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solonode/sno/install/internal/fixture"
)

var errKilled = errors.New("killed")

// fileState is the state of phases that write a file each. The last but one removes what the first two have written.
type fileState struct {
	dir string
	ran []string
	// killAt is the number of the action at which the run is killed; 0 is never.
	killAt, actions int
}

func (f *fileState) act(do func() error) error {
	if f.actions++; f.actions == f.killAt {
		return errKilled
	}
	return do()
}

func (f *fileState) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

func (f *fileState) writes(name string) Phase {
	return Phase{
		Name: name, Limit: time.Minute,
		Done: func(context.Context) (bool, error) { return f.exists(name), nil },
		Run: func(context.Context, *Progress) error {
			f.ran = append(f.ran, name)
			return f.act(func() error { return os.WriteFile(filepath.Join(f.dir, name), []byte(name), 0o600) })
		},
	}
}

func (f *fileState) phases() []Phase {
	return []Phase{
		f.writes("one"), f.writes("two"), f.writes("kept"),
		{Name: "clean", Limit: time.Minute, Run: func(context.Context, *Progress) error {
			f.ran = append(f.ran, "clean")
			for _, name := range []string{"one", "two"} {
				if err := f.act(func() error { return os.RemoveAll(filepath.Join(f.dir, name)) }); err != nil {
					return err
				}
			}
			return nil
		}},
		f.writes("last"),
	}
}

// After any number of kills the same command has the same result, and no phase before the last one that is done runs
// again (R-BIP-3).
func TestKilledAnywhere(t *testing.T) {
	for killAt := 1; killAt <= 6; killAt++ {
		t.Run(fmt.Sprint(killAt), func(t *testing.T) {
			f := &fileState{dir: t.TempDir(), killAt: killAt}
			err := Run(t.Context(), f.phases(), Options{})
			if !errors.Is(err, errKilled) {
				t.Fatalf("not killed: %v", err)
			}
			before := len(f.ran)
			fixture.NoError(t, Run(t.Context(), f.phases(), Options{}))
			for name, want := range map[string]bool{"one": false, "two": false, "kept": true, "last": true} {
				if got := f.exists(name); got != want {
					t.Errorf("%s exists: %t, want %t", name, got, want)
				}
			}
			want := f.ran[before-1]
			if want == "last" {
				want = "clean" // it has no condition
			}
			if got := f.ran[before]; got != want {
				t.Errorf("continued with %s, killed in %s", got, f.ran[before-1])
			}
			before = len(f.ran)
			if err := Run(t.Context(), f.phases(), Options{}); err != nil || len(f.ran) != before {
				t.Errorf("run again: %v, ran %v", err, f.ran[before:])
			}
		})
	}
}

func TestErrors(t *testing.T) {
	errStep, errDone := errors.New("no network"), errors.New("cannot read")
	step := func(err error) func(context.Context, *Progress) error {
		return func(_ context.Context, p *Progress) error {
			p.Waiting("the %s", "registry")
			return err
		}
	}
	condition := func(done bool, err error) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { return done, err }
	}
	waits := func(ctx context.Context, p *Progress) error {
		return p.Until(ctx, time.Second, "the API server", func(context.Context) error { return errStep })
	}
	for name, test := range map[string]struct {
		phase Phase
		want  error
		text  string
		code  int
	}{
		"step":           {Phase{Run: step(errStep)}, errStep, "phase p: waiting for the registry: no network", ExitFailed},
		"input":          {Phase{Run: step(fmt.Errorf("disk: %w", ErrInput))}, ErrInput, "disk: the input has to be changed", ExitInput},
		"condition":      {Phase{Run: step(nil), Done: condition(false, errDone)}, errDone, "check whether it is done: cannot read", ExitFailed},
		"not done after": {Phase{Run: step(nil), Done: condition(false, nil)}, ErrNotDone, ErrNotDone.Error(), ExitFailed},
		"limit":          {Phase{Run: waits}, ErrLimit, "waiting for the API server: no network: time limit exceeded of 1m0s: no network", ExitTimeout},
		"limit of a client": {Phase{Run: func(ctx context.Context, _ *Progress) error {
			<-ctx.Done()
			return ctx.Err()
		}}, ErrLimit, "time limit exceeded of 1m0s", ExitTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.phase.Name, test.phase.Limit = "p", time.Minute
				var last Status
				err := Run(t.Context(), []Phase{test.phase}, Options{Report: func(s Status) { last = s }})
				fixture.Fails(t, "", err, test.want, test.text)
				if got := ExitCode(err); got != test.code || last.ExitCode == nil || *last.ExitCode != test.code {
					t.Errorf("exit code %d, in the status %v, want %d", got, last.ExitCode, test.code)
				}
				if last.State != Failed || last.Phases[0].State == Done || last.Advice == "" || last.Error == "" {
					t.Errorf("status %+v", last)
				}
			})
		})
	}
}

// An interrupt of the caller is not a time limit, and begins no further phase, even if none of them waits.
func TestInterrupted(t *testing.T) {
	for of, result := range map[string]func(context.Context) error{"first": context.Cause, "second": func(context.Context) error { return nil }} {
		ctx, cancel := context.WithCancel(t.Context())
		var ran []string
		phases := make([]Phase, 2)
		for i, name := range []string{"first", "second"} {
			phases[i] = Phase{Name: name, Limit: time.Hour, Run: func(ctx context.Context, _ *Progress) error {
				ran = append(ran, name)
				cancel()
				<-ctx.Done()
				return result(ctx)
			}}
		}
		err := Run(ctx, phases, Options{})
		cancel()
		var stopped *Error
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrLimit) || ExitCode(err) != ExitFailed || !errors.As(err, &stopped) || stopped.Phase != of {
			t.Errorf("error %v, exit code %d", err, ExitCode(err))
		}
		fixture.Equal(t, "phases that ran", []string{"first"}, ran)
	}
}

// The file is complete at any time, and has what the phase waits for.
func TestStatusFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run", "status.json")
	read := func() Status {
		text := fixture.Must(os.ReadFile(file))
		var s Status
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return s
	}
	var waited []string
	phases := []Phase{
		{Name: "before", Limit: time.Hour, Done: func(context.Context) (bool, error) { return true, nil }},
		{Name: "waits", Limit: time.Hour, Run: func(ctx context.Context, p *Progress) error {
			tries := 0
			return p.Until(ctx, time.Millisecond, "etcd", func(context.Context) error {
				if tries++; tries > 3 {
					return nil
				}
				if s := read(); tries > 1 {
					waited = append(waited, s.Phases[1].WaitingFor)
				}
				return fmt.Errorf("attempt %d", (tries+1)/2)
			})
		}},
		{Name: "fails", Limit: time.Hour, Run: func(context.Context, *Progress) error { return errKilled }},
		{Name: "after", Limit: time.Hour},
	}
	err := Run(t.Context(), phases, Options{Command: "bootstrap-in-place", StatusFile: file})
	if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	fixture.Equal(t, "waited for", []string{"etcd: attempt 1", "etcd: attempt 1"}, waited)
	got := read()
	for i, s := range got.Phases {
		if had := s.Started != nil; had != slices.Contains([]string{"waits", "fails"}, s.Name) {
			t.Errorf("%s has a start: %t", s.Name, had)
		}
		got.Phases[i].Started, got.Phases[i].Finished = nil, nil
	}
	code := ExitFailed
	want := Status{
		Command: "bootstrap-in-place", State: Failed, ExitCode: &code, Error: "phase fails: killed",
		Advice: "run the same command again; it continues with this phase",
		Phases: []Step{{Name: "before", State: Done}, {Name: "waits", State: Done}, {Name: "fails", State: Failed, Error: "killed"}, {Name: "after", State: Pending}},
	}
	fixture.Equal(t, "status", want, got)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the status file: %v, %v", info, err)
	}
}

// A second run of the same command is refused, such as one by a person while the unit runs.
func TestTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "status.json")
	var second error
	p := Phase{Name: "p", Limit: time.Minute, Run: func(ctx context.Context, _ *Progress) error {
		second = Run(ctx, nil, Options{StatusFile: file})
		return nil
	}}
	fixture.NoError(t, Run(t.Context(), []Phase{p}, Options{StatusFile: file}))
	if !errors.Is(second, ErrRunning) {
		t.Errorf("the second run: %v", second)
	}
	if err := Run(t.Context(), []Phase{p}, Options{StatusFile: file}); err != nil {
		t.Errorf("a later run: %v", err)
	}
}

// A status file that cannot be written stops no phase, and is reported.
func TestStatusCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	fixture.NoError(t, os.WriteFile(file, nil, 0o600))
	ran, reported := 0, ""
	p := Phase{Name: "p", Limit: time.Minute, Run: func(context.Context, *Progress) error { ran++; return nil }}
	err := Run(t.Context(), []Phase{p, p}, Options{StatusFile: filepath.Join(file, "status.json"), Report: func(s Status) { reported = s.Unwritable }})
	if err != nil || ran != 2 || !strings.Contains(reported, file) {
		t.Errorf("ran %d phases, %v; reported %q", ran, err, reported)
	}
}

func TestInputEndsWaiting(t *testing.T) {
	tries := 0
	p := Phase{Name: "p", Limit: time.Hour, Run: func(ctx context.Context, p *Progress) error {
		return p.Until(ctx, time.Millisecond, "the disk", func(context.Context) error {
			if tries++; tries > 2 {
				return nil
			}
			return fmt.Errorf("no such disk: %w", ErrInput)
		})
	}}
	if err := Run(t.Context(), []Phase{p}, Options{}); !errors.Is(err, ErrInput) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// An attempt that the limit interrupts does not replace what the phase waits for.
func TestLimitInterruptsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Phase{Name: "p", Limit: time.Minute, Run: func(ctx context.Context, p *Progress) error {
			tries := 0
			return p.Until(ctx, time.Second, "the node", func(ctx context.Context) error {
				if tries++; tries == 1 {
					return errKilled
				}
				<-ctx.Done()
				return ctx.Err()
			})
		}}
		err := Run(t.Context(), []Phase{p}, Options{})
		fixture.Fails(t, "", err, ErrLimit, errKilled, "waiting for the node: killed: ")
	})
}

// late is a context that does not report its end yet.
type late struct{ context.Context }

func (late) Err() error { return nil }

// A client that observes the limit before the context does not replace what the phase waits for either.
func TestClientObservesLimitFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tries := 0
		err := (&Progress{}).Until(late{ctx}, time.Second/2, "the port", func(context.Context) error {
			if tries++; tries == 1 {
				return errKilled
			}
			<-ctx.Done()
			return context.DeadlineExceeded
		})
		if !errors.Is(err, errKilled) || tries < 2 {
			t.Errorf("error %v after %d tries", err, tries)
		}
	})
}
