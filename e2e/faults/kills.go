// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solonode/sno/e2e/framework"
)

// Kills are the figures of the kills.
type Kills struct {
	// Rounds are changes of the cluster, each followed by one kill or more.
	Rounds int
	// ByMode and ByChange are numbers of kills.
	ByMode, ByChange map[string]int
	// Settled are the times from the last kill of a round until everything had its final state.
	Settled []time.Duration
	// Writes and Effective are write requests of the controllers without reports, and those that changed something.
	Writes, Effective int
	// Needless are accepted writes that changed nothing.
	Needless int
}

const (
	// longestDelay bounds the time from a change to a kill at any moment.
	longestDelay = 2 * time.Second
	// longestLate bounds the time from the start of a new process to the arrival of a write of the former one.
	longestLate = time.Second
	// again is the share of kills after which the new process is killed as well.
	again  = 0.25
	atRest = "at rest"
)

// kill is one kill, chosen at random.
type kill struct {
	mode  Mode
	write int
	delay time.Duration // until a kill at any moment, or until a delayed write arrives
}

// choose chooses a kill. The number of random values does not depend on the mode.
func (e *environment) choose(writes int) kill {
	modes := []Mode{BeforeRequest, AfterRequest, Delayed, AnyMoment}
	k := kill{mode: modes[e.random.IntN(len(modes))], write: 1 + e.random.IntN(writes)}
	part := e.random.Float64()
	if k.delay = time.Duration(part * float64(longestDelay)); k.mode == Delayed {
		k.delay = time.Duration(part * float64(longestLate))
	}
	return k
}

func (k kill) String() string {
	switch k.mode {
	case AnyMoment:
		return fmt.Sprintf("%s, after %s", k.mode, k.delay.Round(time.Millisecond))
	case Delayed:
		return fmt.Sprintf("%s, %d by %s", k.mode, k.write, k.delay.Round(time.Millisecond))
	case BeforeRequest, AfterRequest:
	}
	return fmt.Sprintf("%s, %d", k.mode, k.write)
}

// round makes a change, kills the process once or more, and checks what was written.
func (e *environment) round(ctx context.Context, p *process, c change, figures *Kills) error {
	var kills []kill
	for left := c.writes; len(kills) == 0 || e.random.Float64() < again; left = max(left/3, 1) {
		kills = append(kills, e.choose(left))
	}
	var tags []string
	var settled time.Duration
	for i := 0; ; i++ {
		var fired, late chan struct{}
		disarm := func() {}
		if i < len(kills) {
			fired, late = make(chan struct{}), make(chan struct{})
			disarm = arm(p, kills[i], fired, late)
		}
		if i == 0 {
			if err := c.make(ctx); err != nil {
				return err
			}
		}
		took, err := e.waitSettled(ctx, fired, c.done, p)
		switch {
		case err == nil && i < len(kills):
			// The write did not come, so the process is killed at rest.
			disarm()
			if err := p.component.Kill(); err != nil {
				return err
			}
			tags = append(tags, atRest)
			figures.ByMode[atRest]++
		case err == nil:
			settled = took
		case errors.Is(err, errInterrupted):
			tags = append(tags, kills[i].String())
			figures.ByMode[string(kills[i].mode)]++
		default:
			return fmt.Errorf("%s, killed %v: %w\n%s", c.name, tags, err, p.component.LogTail(logTail))
		}
		if i >= len(kills) {
			break
		}
		figures.ByChange[c.name]++
		if err := e.restart(ctx, p); err != nil {
			return err
		}
		time.AfterFunc(kills[i].delay, func() { close(late) })
	}
	p.Delivered()
	late := slices.ContainsFunc(kills, func(k kill) bool { return k.mode == Delayed })
	return e.concluded(ctx, c, tags, late, settled, figures)
}

const logTail = 4000

// arm prepares a kill, see armed.
func arm(p *process, k kill, fired, late chan struct{}) (disarm func()) {
	return armed(p, k, func() {
		_ = p.component.Kill() // its only error is that there is no process
		close(fired)
	}, fired, late)
}

// armed prepares an act at a chosen moment, which the returned function cancels. The act closes fired, and a delayed
// write arrives when late is closed.
func armed(p *process, k kill, act func(), fired, late chan struct{}) (disarm func()) {
	if k.mode != AnyMoment {
		p.Arm(&Trap{At: k.write, Mode: k.mode, Act: act, Release: late})
		return func() { p.Arm(nil) }
	}
	p.Arm(nil)
	timer := time.AfterFunc(k.delay, act)
	return func() {
		if !timer.Stop() {
			<-fired
		}
	}
}

// concluded checks a round.
func (e *environment) concluded(ctx context.Context, c change, tags []string, late bool, settled time.Duration, figures *Kills) error {
	writes, err := e.writes(ctx)
	if err != nil {
		return err
	}
	found, err := e.check(ctx, writes)
	if err != nil {
		return err
	}
	if c.check != nil {
		found = append(found, c.check(writes)...)
	}
	for _, w := range writes {
		if ours(w) && !isReport(w) && w.Subresource != "status" {
			figures.Writes++
			if w.Effective {
				figures.Effective++
			}
		}
	}
	needless := Needless(writes, ours)
	figures.Needless += len(needless)
	if !late { // a write that arrives late may repeat that of the next process, or the other way round
		found = append(found, slices.Concat(needless, ReportedTwice(writes, ours))...)
	}
	figures.Rounds++
	figures.Settled = append(figures.Settled, settled)
	e.logf("%4d kills  %-36s settled after %5s, killed %s", total(figures.ByMode), c.name, settled.Round(10*time.Millisecond), strings.Join(tags, "; "))
	if len(found) > 0 {
		return fmt.Errorf("%w after %s, killed %v:\n%s\nwrites:\n%s", ErrInvariant, c.name, tags, texts(found), listing(writes))
	}
	return nil
}

func listing(writes []Write) string {
	var text string
	for _, w := range writes {
		if ours(w) && !isReport(w) {
			text += fmt.Sprintf("  %s, version %d, effective %t: %.400s\n", w, w.Version, w.Effective, w.content())
		}
	}
	return text
}

func total(numbers map[string]int) int {
	sum := 0
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// undisturbed makes a change without a fault, as the reference for later ones.
func (e *environment) undisturbed(ctx context.Context, p *process, c change) error {
	p.Arm(nil)
	if err := c.make(ctx); err != nil {
		return err
	}
	settled, err := e.waitSettled(ctx, nil, c.done, p)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", c.name, err, p.component.LogTail(logTail))
	}
	writes, err := e.writes(ctx)
	if err != nil {
		return err
	}
	found, err := e.check(ctx, writes)
	if err != nil {
		return err
	}
	found = append(found, ReportedTwice(writes, ours)...)
	if c.check != nil {
		found = append(found, c.check(writes)...)
	}
	found = append(found, Needless(writes, ours)...)
	e.logf("without a fault: %s: settled after %s, %d writes", c.name, settled.Round(10*time.Millisecond), p.Writes())
	if len(found) > 0 {
		return fmt.Errorf("%w after %s:\n%s\nwrites:\n%s", ErrInvariant, c.name, texts(found), listing(writes))
	}
	return nil
}

// kills runs kubectl-sno and kills it while changes of the cluster are followed.
func (e *environment) kills(ctx context.Context) (*Kills, error) {
	figures := &Kills{ByMode: map[string]int{}, ByChange: map[string]int{}}
	p, err := e.settledAll(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.tour(ctx, p); err != nil {
		return nil, err
	}
	apart := e.options.Kills / aloneShare
	for total(figures.ByMode) < e.options.Kills-2*apart {
		if err := e.next(ctx, p, figures); err != nil {
			return figures, err
		}
	}
	if err := e.rest(ctx); err != nil {
		return figures, err
	}
	if err := e.clear(ctx, p); err != nil {
		return figures, err
	}
	if err := e.end(ctx, p); err != nil {
		return figures, err
	}
	others := framework.AllModules()[1:]
	for _, module := range []framework.Module{framework.Ingress, others[e.random.IntN(len(others))]} {
		if err := e.alone(ctx, module, apart, figures); err != nil {
			return figures, err
		}
	}
	return figures, nil
}

// aloneShare is the share of kills, one in so many, of each of two controllers of one module.
const aloneShare = 6

// tour flips the topology in both directions without a fault, as the reference for later flips.
func (e *environment) tour(ctx context.Context, p *process) error {
	for range 2 {
		if err := e.undisturbed(ctx, p, e.flip()); err != nil {
			return err
		}
	}
	return nil
}

// next makes one or two random rounds.
func (e *environment) next(ctx context.Context, p *process, figures *Kills) error {
	switch kind := e.random.IntN(8); {
	case kind < 3, kind < 6 && !e.single: // where nothing is in force, nothing is handed over
		return e.round(ctx, p, e.flip(), figures)
	case kind < 6:
		modules := slices.Sorted(maps.Keys(optOutObjects()))
		return e.round(ctx, p, e.optOut(modules[e.random.IntN(len(modules))]), figures)
	}
	return e.drained(ctx, p, figures)
}

// drained makes two rounds: a drain and its end.
func (e *environment) drained(ctx context.Context, p *process, figures *Kills) error {
	drain, uncordon, err := e.drain(ctx)
	if err != nil {
		return err
	}
	if err := e.round(ctx, p, drain, figures); err != nil {
		return err
	}
	return e.round(ctx, p, uncordon, figures)
}
