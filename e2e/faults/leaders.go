// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"
)

// Leaders are the figures of the times with two leaders.
type Leaders struct {
	Times int
	// Requests are the writes of former leaders from their continuation on, without Leases and events, Refused those that
	// the API server refused, and Writes the patches that changed something.
	Requests, Refused, Writes int
	// Unbound are those of Writes that could have overwritten what the next leader wrote.
	Unbound int
	// Created are objects that they created, and that the next leader deleted.
	Created int
	// Together are effective writes of both while the topology changed twice.
	Together int
}

// twoLeaders stops the leader at a random moment, has another process take its Lease, and continues it when that has
// made a change. The former leader then assumes to lead until it reads its Lease.
func (e *environment) twoLeaders(ctx context.Context) (*Leaders, error) {
	figures := &Leaders{}
	leader, err := e.settledAll(ctx)
	if err != nil {
		return nil, err
	}
	for range e.options.Leaders {
		next, err := e.takeOver(ctx, leader, figures)
		if err != nil {
			return figures, err
		}
		leader = next
	}
	return figures, e.end(ctx, leader)
}

func (e *environment) takeOver(ctx context.Context, former *process, figures *Leaders) (*process, error) {
	c := e.flip()
	k := e.choose(c.writes)
	fired, late := make(chan struct{}), make(chan struct{})
	var stopErr error
	stop := func() {
		stopErr = syscall.Kill(former.component.PID(), syscall.SIGSTOP)
		close(fired)
	}
	disarm := armed(former, k, stop, fired, late)
	if err := c.make(ctx); err != nil {
		return nil, err
	}
	tag := k.String()
	switch _, err := e.waitSettled(ctx, fired, nil, former); {
	case err == nil:
		disarm()
		tag = atRest
		stopErr = syscall.Kill(former.component.PID(), syscall.SIGSTOP)
	case !errors.Is(err, errInterrupted):
		return nil, fmt.Errorf("%s: %w\n%s", c.name, err, former.component.LogTail(logTail))
	}
	if stopErr != nil {
		return nil, fmt.Errorf("%w: stop %s: %w", errFault, former.name, stopErr)
	}
	if err := e.releaseLease(ctx, former.lease); err != nil {
		return nil, err
	}
	e.started++
	next, err := e.runAll(ctx, fmt.Sprintf("kubectl-sno-%d", e.started))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	// The next leader ends the change, and makes the opposite one.
	for _, step := range []change{{name: "take-over", make: func(context.Context) error { return nil }}, e.flip()} {
		if err := e.checked(ctx, step, tag, next); err != nil {
			return nil, err
		}
	}
	_, holder, err := e.identity(ctx, next)
	if err != nil {
		return nil, err
	}

	stopped := time.Since(began)
	close(late)
	arrived := former.Delivered()
	if err := syscall.Kill(former.component.PID(), syscall.SIGCONT); err != nil {
		return nil, fmt.Errorf("%w: continue %s: %w", errFault, former.name, err)
	}
	if err := pauseFor(ctx, quietTime); err != nil {
		return nil, err
	}
	if _, err := e.waitSettled(ctx, nil, nil, next, former); err != nil {
		return nil, err
	}
	writes, err := e.writes(ctx)
	if err != nil {
		return nil, err
	}
	found, err := e.check(ctx, writes)
	if err != nil {
		return nil, err
	}
	found = append(found, FormerLeader(writes, former.mark)...)
	_, still, err := e.identity(ctx, next)
	if err != nil {
		return nil, err
	}
	found = append(found, SameHolder(holder, still)...)
	for _, w := range writes {
		if w.Process != former.mark || isReport(w) {
			continue
		}
		figures.Requests++
		if w.Code >= http.StatusBadRequest {
			figures.Refused++
		}
		if creates(w) {
			figures.Created++
		}
	}
	figures.Times++
	figures.Writes += len(LateWrites(writes, former.mark))
	figures.Unbound += len(FormerLeader(writes, former.mark))
	e.logf("%4d times with two leaders: stopped %s for %s, %d writes late", figures.Times, tag, stopped.Round(10*time.Millisecond), arrived)
	if len(found) > 0 {
		return nil, fmt.Errorf("%w with two leaders, stopped %s:\n%s\nwrites:\n%s", ErrInvariant, tag, texts(found), listing(writes))
	}

	// Now both follow a change.
	for range 2 {
		before := figures.Together
		writes, err := e.together(ctx, next, former)
		if err != nil {
			return nil, err
		}
		for _, w := range writes {
			if w.Process == former.mark && w.Effective && !isReport(w) && w.Subresource != "status" {
				figures.Together++
			}
		}
		e.logf("            both follow a flip: %d effective writes of the former leader", figures.Together-before)
	}
	// Each flip releases the Lease, so that the former leader may hold it again.
	if _, still, err = e.identity(ctx, next); err != nil {
		return nil, err
	}
	leader, other := next, former
	if still != holder {
		leader, other = former, next
	}
	if err := other.component.Kill(); err != nil {
		return nil, err
	}
	other.Stop()
	return leader, nil
}

func (e *environment) together(ctx context.Context, processes ...*process) ([]Write, error) {
	c := e.flip()
	if err := c.make(ctx); err != nil {
		return nil, err
	}
	if _, err := e.waitSettled(ctx, nil, nil, processes...); err != nil {
		return nil, err
	}
	writes, err := e.writes(ctx)
	if err != nil {
		return nil, err
	}
	found, err := e.check(ctx, writes)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w while two lead, %s:\n%s\nwrites:\n%s", ErrInvariant, c.name, texts(found), listing(writes))
	}
	return writes, err
}

// checked makes a change and checks it.
func (e *environment) checked(ctx context.Context, c change, tag string, p *process) error {
	if err := c.make(ctx); err != nil {
		return err
	}
	if _, err := e.waitSettled(ctx, nil, nil, p); err != nil {
		return fmt.Errorf("%s, stopped %s: %w\n%s", c.name, tag, err, p.component.LogTail(logTail))
	}
	writes, err := e.writes(ctx)
	if err != nil {
		return err
	}
	found, err := e.check(ctx, writes)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w after %s, stopped %s:\n%s\nwrites:\n%s", ErrInvariant, c.name, tag, texts(found), listing(writes))
	}
	return err
}
