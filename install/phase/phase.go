// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Phase is a step of an installation.
type Phase struct {
	// Name is stable, in lower case with dashes, for scripts that read the status file.
	Name string
	// Done reports whether the phase is done, and only reads. If it is nil, the phase runs again unless a later one is
	// done.
	Done func(ctx context.Context) (bool, error)
	// Run does the work. It may be called again after it was killed at any point.
	Run   func(ctx context.Context, p *Progress) error
	Limit time.Duration
}

// Progress receives the progress of a phase.
type Progress struct {
	waiting func(string)
}

// Waiting reports what the phase waits for, such as "the API server at https://localhost:6443". Repeated texts are
// reported once.
func (p *Progress) Waiting(format string, args ...any) {
	if p != nil && p.waiting != nil {
		p.waiting(fmt.Sprintf(format, args...))
	}
}

var (
	// ErrLimit is in the error of a phase that exceeded its limit. The same command continues with it.
	ErrLimit = errors.New("time limit exceeded")
	// ErrInput is in the error of a phase that fails until a person changes its input.
	ErrInput = errors.New("the input has to be changed")
	// ErrNotDone is in the error of a phase whose step succeeded, but whose condition is not met.
	ErrNotDone = errors.New("the step succeeded, but its condition is not met")
)

// Error is the error of one phase.
type Error struct {
	Phase string
	// Waiting is what the phase last waited for, or "".
	Waiting string
	Err     error
}

func (e *Error) Error() string {
	if e.Waiting != "" {
		return fmt.Sprintf("phase %s: waiting for %s: %v", e.Phase, e.Waiting, e.Err)
	}
	return fmt.Sprintf("phase %s: %v", e.Phase, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Until calls try at each interval until it returns nil, and reports its errors as what the phase waits for. An error
// with ErrInput is returned immediately, and the last error when the context ends.
func (p *Progress) Until(ctx context.Context, interval time.Duration, what string, try func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil || errors.Is(err, ErrInput) {
			return err
		}
		// The error of an interrupted attempt is not what the phase waits for.
		if !over(ctx) || last == nil {
			last = err
			p.Waiting("%s: %v", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// over reports whether the time is over. A client may observe a deadline before its context does.
func over(ctx context.Context) bool {
	at, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(at)
}

// Options of Run.
type Options struct {
	Command string
	// StatusFile is written at every change; "" for none.
	StatusFile string
	// Report is called with a copy of the status at every change; nil for none.
	Report func(Status)
}

// Run runs the phases after the last one that is done. The error is an *Error or ErrRunning. A status file that
// cannot be written stops nothing.
func Run(ctx context.Context, phases []Phase, o Options) error {
	r := newRun(phases, o)
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	first, err := r.firstToRun(ctx)
	if err != nil {
		return r.end(err)
	}
	for i := range phases[:first] {
		r.status.Phases[i].State = Done
	}
	for i := first; i < len(phases); i++ {
		if ctx.Err() != nil {
			return r.end(&Error{Phase: phases[i].Name, Err: context.Cause(ctx)})
		}
		if err := r.phase(ctx, i); err != nil {
			return r.end(err)
		}
	}
	return r.end(nil)
}

func (r *run) firstToRun(ctx context.Context) (int, error) {
	for i := len(r.phases) - 1; i >= 0; i-- {
		p := r.phases[i]
		if p.Done == nil {
			continue
		}
		done, err := p.Done(ctx)
		if err != nil {
			return 0, &Error{Phase: p.Name, Err: fmt.Errorf("check whether it is done: %w", err)}
		}
		if done {
			return i + 1, nil
		}
	}
	return 0, nil
}

func (r *run) phase(ctx context.Context, i int) error {
	p, s := r.phases[i], &r.status.Phases[i]
	s.State, s.Started = Running, timestamp(time.Now())
	r.changed()
	limited, cancel := context.WithTimeoutCause(ctx, p.Limit, fmt.Errorf("%w of %s", ErrLimit, p.Limit))
	defer cancel()
	err := p.Run(limited, &Progress{waiting: func(what string) { r.waiting(i, what) }})
	if err == nil && p.Done != nil {
		done, doneErr := p.Done(limited)
		if err = doneErr; err == nil && !done {
			err = ErrNotDone
		}
	}
	if err != nil {
		if cause := context.Cause(limited); errors.Is(cause, ErrLimit) && !errors.Is(err, ErrLimit) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return &Error{Phase: p.Name, Waiting: s.WaitingFor, Err: err}
	}
	s.State, s.WaitingFor, s.Finished = Done, "", timestamp(time.Now())
	r.changed()
	return nil
}
