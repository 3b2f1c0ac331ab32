package stable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrNotStable is returned when the limit of time has passed. The error lists what was waited for.
	ErrNotStable = errors.New("the cluster is not stable")
	// ErrOptions is returned for options with which nothing could be waited for.
	ErrOptions = errors.New("invalid options")
)

// Options say how long to wait.
type Options struct {
	// Quiet is for how long nothing may move. With 0 one look at which nothing moves is enough.
	Quiet time.Duration
	// Timeout is after what time Wait gives up.
	Timeout time.Duration
	// Every is the time between two looks.
	Every time.Duration
	// Remind is after what time without a change the progress is told again.
	Remind time.Duration
	// Progress is told what is waited for, a line for each change.
	Progress io.Writer
}

// Validate reports options that contradict each other.
func (o Options) Validate() error {
	switch {
	case o.Quiet < 0 || o.Timeout <= 0 || o.Every <= 0 || o.Remind <= 0:
		return fmt.Errorf("%w: no time may be negative, and only the quiet period may be 0", ErrOptions)
	case o.Quiet > o.Timeout:
		return fmt.Errorf("%w: %s of quiet do not fit into a limit of %s", ErrOptions, o.Quiet, o.Timeout)
	}
	return nil
}

// Outcome is what Wait has found.
type Outcome struct {
	Stable bool `json:"stable"`
	// Waited is for how long Wait has waited, and Quiet for how long nothing had moved at its end.
	Waited metav1.Duration `json:"waited"`
	Quiet  metav1.Duration `json:"quiet"`
	// Report is the last look.
	Report `json:",inline"`
}

// Wait looks again and again until nothing has moved for the quiet period. look reads the cluster, usually by Gather. After the limit it
// returns ErrNotStable, and when the context ends the context's error; both with what was found last.
func Wait(ctx context.Context, look func(context.Context) State, o Options) (Outcome, error) {
	if err := o.Validate(); err != nil {
		return Outcome{}, err
	}
	start := time.Now()
	var quiet Quiet
	said := progress{out: o.Progress, options: o}
	for {
		report := Look(look(ctx))
		if ctx.Err() != nil {
			return Outcome{}, ctx.Err()
		}
		now := time.Now()
		waited := now.Sub(start)
		verdict := quiet.Observe(&report, now)
		out := Outcome{Waited: rounded(waited), Quiet: rounded(verdict.Quiet), Report: report}
		if out.Stable = verdict.AtRest && verdict.Quiet >= o.Quiet; out.Stable {
			return out, nil
		}
		if waited >= o.Timeout {
			return out, out.err()
		}
		said.tell(now, waited, &report, verdict)
		if err := sleep(ctx, pause(o, waited, verdict)); err != nil {
			return out, err
		}
	}
}

// pause is how long to wait for the next look: neither beyond the limit nor beyond the end of the quiet period.
func pause(o Options, waited time.Duration, v Verdict) time.Duration {
	next := min(o.Every, o.Timeout-waited)
	if v.AtRest {
		next = min(next, o.Quiet-v.Quiet)
	}
	return next
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (o *Outcome) err() error {
	var lines []string
	for _, m := range o.Moving {
		lines = append(lines, m.String())
	}
	for _, u := range o.Unknown {
		lines = append(lines, u.String())
	}
	if len(lines) == 0 {
		lines = append(lines, "nothing moves any more, but only for "+o.Quiet.Duration.String())
	}
	return fmt.Errorf("%w after %s:\n  %s", ErrNotStable, o.Waited.Duration, strings.Join(lines, "\n  "))
}

func rounded(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d.Round(time.Second)} }
