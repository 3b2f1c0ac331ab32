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
