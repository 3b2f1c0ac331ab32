package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/render/store"
)

// Errors of Run, which name the loop.
var (
	ErrDuplicate  = errors.New("two loops have this name")
	ErrFailed     = errors.New("the loop failed")
	ErrPanicked   = errors.New("the loop panicked")
	ErrTimeout       = errors.New("the loop did not end in time")
	ErrNotSettled = errors.New("the cycle did not settle")
	ErrOrder      = errors.New("the order of the loops is wrong")
	ErrEarlyAccess      = errors.New("the loop reads or writes before it runs")
)

// grace is how long a loop whose context has ended may take to return.
const stopTimeout = time.Second

// Options of a run.
type Options struct {
	// Limit is the time that a loop may take for one reconciliation.
	Timeout time.Duration
	// Report is called after each reconciliation; nil for nobody.
	Report func(Report)
}

// Report is about one reconciliation.
type Report struct {
	Loop string
	// Round counts from 1; loops outside of a cycle have one.
	Round int
	// Wrote names what the loop changed, in order.
	Wrote []string
	Duration  time.Duration
}

// Run runs the steps over the store. After an error the store holds what was written until then.
func Run(ctx context.Context, s *store.Store, steps []Step, o Options) error {
	r := runner{store: s, options: o}
	if err := r.open(steps); err != nil {
		return err
	}
	defer r.close()
	for _, members := range r.steps {
		if err := r.step(ctx, members); err != nil {
			return err
		}
	}
	return r.checkOrder()
}

type runner struct {
	store   *store.Store
	options Options
	steps   []step
}

type step struct {
	members []*member
	max     int
}

type member struct {
	Loop
	session *store.Session
	sync    Sync
}

func (r *runner) open(steps []Step) error {
	names := map[string]bool{}
	for _, declared := range steps {
		opened := step{max: declared.MaxRounds}
		for _, l := range declared.Loops {
			if names[l.Name] {
				return fmt.Errorf("%q: %w", l.Name, ErrDuplicate)
			}
			names[l.Name] = true
			session := r.store.Session(l.Name, l.Writes...)
			sync, err := prepare(l, session)
			if err != nil {
				return err
			}
			if !session.Idle() {
				return fmt.Errorf("%q: %w", l.Name, ErrEarlyAccess)
			}
			opened.members = append(opened.members, &member{Loop: l, session: session, sync: sync})
		}
		r.steps = append(r.steps, opened)
	}
	return nil
}

func prepare(l Loop, session *store.Session) (sync Sync, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%q: %w: %v\n%s", l.Name, ErrPanicked, p, debug.Stack())
		}
	}()
	if sync, err = l.New(session); err != nil {
		return nil, fmt.Errorf("%q: %w: prepare it: %w", l.Name, ErrFailed, err)
	}
	return sync, nil
}

func (r *runner) close() {
	for _, s := range r.steps {
		for _, m := range s.members {
			m.session.Close()
		}
	}
}

func (r *runner) step(ctx context.Context, s step) error {
	for round := 1; ; round++ {
		var changed []string
		for _, m := range s.members {
			wrote, err := r.reconcile(ctx, m, round)
			// In a cycle, what a loop needs may be written by one that follows it: only the last round counts.
			if err != nil && (s.max == 0 || round >= s.max || !errors.Is(err, ErrFailed)) {
				return r.orderHint(m, err)
			}
			if err != nil {
				wrote = append(wrote, fmt.Sprintf("nothing, but it failed: %v", err))
			}
			if len(wrote) > 0 {
				changed = append(changed, fmt.Sprintf("%q still changes %s", m.Name, strings.Join(wrote, ", ")))
			}
		}
		if s.max == 0 || len(changed) == 0 {
			return nil
		}
		if round == s.max {
			return fmt.Errorf("%w in %d rounds: %s", ErrNotSettled, s.max, strings.Join(changed, "; "))
		}
	}
}

// reconcile runs a loop once and returns what it wrote.
func (r *runner) reconcile(ctx context.Context, m *member, round int) ([]string, error) {
	m.session.Reset()
	started := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- fmt.Errorf("%q: %w: %v\n%s", m.Name, ErrPanicked, p, debug.Stack())
			}
		}()
		if err := m.sync(limited); err != nil {
			ended <- fmt.Errorf("%q: %w: %w", m.Name, ErrFailed, err)
			return
		}
		ended <- nil
	}()
	var err error
	select {
	case err = <-ended:
	case <-limited.Done():
		select {
		case err = <-ended:
		case <-time.After(stopTimeout):
		}
	}
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%q: %w", m.Name, ctx.Err())
	case limited.Err() != nil && !errors.Is(err, ErrPanicked):
		// Whatever it returned, the end of its time is the reason.
		late := fmt.Errorf("%q: %w: %s", m.Name, ErrTimeout, r.options.Timeout)
		if err != nil {
			late = fmt.Errorf("%w: %v", late, err) //nolint:errorlint // It is no ErrFailed, which a cycle may get over.
		}
		err = late
	}
	if undeclared := m.session.Err(); undeclared != nil {
		err = fmt.Errorf("%q: %w", m.Name, undeclared)
	}
	wrote := m.session.Wrote()
	if r.options.Report != nil {
		r.options.Report(Report{Loop: m.Name, Round: round, Wrote: wrote, Duration: time.Since(started)})
	}
	return wrote, err
}

// hint adds to the error of a loop which later loop writes what it did not find.
func (r *runner) orderHint(failed *member, err error) error {
	if !errors.Is(err, ErrFailed) {
		return err
	}
	var hints []string
	later := false
	for _, s := range r.steps {
		// The other members of a cycle have had their turn.
		if slices.Contains(s.members, failed) {
			later = true
			continue
		}
		if !later {
			continue
		}
		for _, m := range s.members {
			for _, missed := range failed.session.NotFound() {
				for _, p := range m.Writes {
					if p.Selects(missed) {
						hints = append(hints, fmt.Sprintf("%q, which comes later, writes %s", m.Name, missed))
						break
					}
				}
			}
		}
	}
	if len(hints) == 0 {
		return err
	}
	return fmt.Errorf("%w: %w: %s", err, ErrOrder, strings.Join(hints, "; "))
}

// outdated returns an error if a loop has read something that was written after it had run for the last time.
func (r *runner) checkOrder() error {
	var faults []error
	for _, s := range r.steps {
		for _, m := range s.members {
			for _, o := range m.session.StaleReads(m.AllowStale...) {
				faults = append(faults, fmt.Errorf("%q: %w: %s: run %q first, or put both into a cycle", m.Name, ErrOrder, o, o.Writer))
			}
		}
	}
	return errors.Join(faults...)
}
