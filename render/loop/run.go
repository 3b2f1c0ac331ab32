// SPDX-License-Identifier: Apache-2.0

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

// Errors of Run.
var (
	ErrDuplicate   = errors.New("two loops have this name")
	ErrFailed      = errors.New("the loop failed")
	ErrPanicked    = errors.New("the loop panicked")
	ErrTimeout     = errors.New("the loop timed out")
	ErrNotSettled  = errors.New("the cycle did not settle")
	ErrOrder       = errors.New("the order of the loops is wrong")
	ErrEarlyAccess = errors.New("the loop reads or writes before it runs")
)

// stopTimeout is how long a loop may take to return after its context has ended.
const stopTimeout = time.Second

// Options are the limit of each reconciliation and the receiver of reports.
type Options struct {
	// Timeout is the limit of one reconciliation.
	Timeout time.Duration
	Report  func(Report)
}

// Report describes one reconciliation.
type Report struct {
	Loop     string
	Round    int
	Wrote    []string
	Duration time.Duration
}

// Run runs the steps over the store. After an error the store has the writes up to then.
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
			// In a cycle, a later loop may write what this one needs: only errors of the last round count.
			if err != nil && (s.max == 0 || round >= s.max || !errors.Is(err, ErrFailed)) {
				return r.orderHint(m, err)
			}
			if err != nil {
				wrote = append(wrote, fmt.Sprintf("nothing and fails: %v", err))
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
		// The timeout is reported even if the loop returned another error.
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

// orderHint adds to an error the later loop that writes what the failed loop did not find.
func (r *runner) orderHint(failed *member, err error) error {
	if !errors.Is(err, ErrFailed) {
		return err
	}
	var hints []string
	later := false
	for _, s := range r.steps {
		// The other loops of the cycle have run.
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
						hints = append(hints, fmt.Sprintf("%q, which runs later, writes %s", m.Name, missed))
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

// checkOrder returns an error if an object that a loop has read was changed after its last run.
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
