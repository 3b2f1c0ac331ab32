// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
