package phase

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Phase is one step of an installation.
type Phase struct {
	// Name is stable, in lower case with dashes: scripts read it in the status file.
	Name string
	// Done reports whether the phase is done. It only reads. Nil means that the phase runs again unless a later one is done.
	Done func(ctx context.Context) (bool, error)
	// Run does it. It may be called again after it was killed at any point, and must go on then.
	Run func(ctx context.Context, p *Progress) error
	// Limit is how long Run may take.
	Limit time.Duration
}

// Progress is how a phase reports what it does.
type Progress struct {
	waiting func(string)
}

// Waiting reports what the phase waits for, such as "the API server at https://localhost:6443". The same text twice is reported once.
func (p *Progress) Waiting(format string, args ...any) {
	if p != nil && p.waiting != nil {
		p.waiting(fmt.Sprintf(format, args...))
	}
}

var (
	// ErrLimit is in the error of a phase that took longer than its limit: running the command again goes on with it.
	ErrLimit = errors.New("time limit exceeded")
	// ErrInput is in the error of a phase that cannot succeed before somebody changes what it was given.
	ErrInput = errors.New("the input has to be changed")
	// ErrNotDone is in the error of a phase whose step succeeded and whose condition does not hold.
	ErrNotDone = errors.New("the step succeeded, but its condition does not hold")
)

// Error is the error of one phase.
type Error struct {
	Phase string
	// Waiting is what the phase waited for last; empty for nothing.
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

// Until calls try until it returns nil, every interval, and reports its error as what is waited for. It returns the last error of try
// when the context ends, and at once an error with ErrInput.
func (p *Progress) Until(ctx context.Context, interval time.Duration, what string, try func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil || errors.Is(err, ErrInput) {
			return err
		}
		// A try that the end has cut off says nothing of what was waited for.
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

// over reports whether the time is over. A client may notice a deadline before its context does.
func over(ctx context.Context) bool {
	at, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(at)
}
