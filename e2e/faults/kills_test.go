// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/solonode/sno/e2e/framework"
	"github.com/solonode/sno/e2e/framework/suite"
)

// tally are the figures of the kills.
type tally struct {
	// rounds are changes of the cluster, each followed by one kill or more.
	rounds int
	// byMode and byChange are numbers of kills.
	byMode, byChange map[string]int
	// settled are the times from the last kill of a round until everything had its final state.
	settled []time.Duration
	// writes and effective are write requests of the controllers without reports, and those that changed something.
	// needless are accepted writes that changed nothing.
	writes, effective, needless int
}

func (t *tally) kills() (sum int) {
	for _, n := range t.byMode {
		sum += n
	}
	return sum
}

func (t *tally) record() {
	if len(t.settled) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(t.settled))
	writes := suite.Figure("Writes of the killed controllers, without reports", "%d, of which %d changed something; %d repeated what was in place", t.writes, t.effective, t.needless)
	writes.Bound = "0 twice"
	suite.Record(suite.Faults,
		suite.Figure("Kills of the controllers, by moment", "%d in %d changes of the cluster: %s", t.kills(), t.rounds, numbers(t.byMode)),
		suite.Figure("Kills by change", "%s", numbers(t.byChange)),
		suite.Figure("From the last kill of a change to the final state", "median %s, max %s", seconds(sorted[len(sorted)/2]), seconds(sorted[len(sorted)-1])), writes)
}

const (
	// longestDelay bounds the time from a change to a kill at any moment.
	longestDelay = 2 * time.Second
	// longestLate bounds the time from the start of a new process to the arrival of a write of the former one.
	longestLate = time.Second
	// again is the share of kills after which the new process is killed as well.
	again  = 0.25
	atRest = "at rest"
	// aloneShare is the share of kills, one in so many, of each of two controllers of one module.
	aloneShare = 6
)

// kills runs kubectl-sno and kills it while changes of the cluster are followed.
func (e *environment) kills(ctx context.Context) {
	defer e.tally.record() // also of a run that fails
	p := e.settledAll(ctx)
	// Flips in both directions without a fault are the reference for later ones.
	e.undisturbed(ctx, p, e.flip())
	e.undisturbed(ctx, p, e.flip())
	apart := *killCount / aloneShare
	for e.tally.kills() < *killCount-2*apart {
		switch kind := e.random.IntN(8); {
		case kind < 3, kind < 6 && !e.single: // where nothing is in force, nothing is handed over
			e.round(ctx, p, e.flip())
		case kind < 6:
			modules := slices.Sorted(maps.Keys(optOutObjects()))
			e.round(ctx, p, e.optOut(modules[e.random.IntN(len(modules))]))
		default:
			e.drained(ctx, p)
		}
	}
	suite.Elapse(ctx, restTime)
	if found := AtRest(e.writes(ctx)); len(found) > 0 {
		Fail("An invariant does not hold:\n" + texts(found))
	}
	e.clear(ctx, p)
	e.end(ctx, p)
	others := framework.AllModules()[1:]
	for _, module := range []framework.Module{framework.Ingress, others[e.random.IntN(len(others))]} {
		e.alone(ctx, module, apart)
	}
}

// drained makes two rounds: a drain and its end.
func (e *environment) drained(ctx context.Context, p *process) {
	drain, uncordon := e.drain(ctx)
	e.round(ctx, p, drain)
	e.round(ctx, p, uncordon)
}

// undisturbed makes a change without a fault, as the reference for later ones.
func (e *environment) undisturbed(ctx context.Context, p *process, c change) {
	GinkgoHelper()
	p.Arm(nil)
	c.make(ctx)
	settled, _ := e.waitSettled(ctx, c.name, c.done, nil, p)
	e.conclude(ctx, c.name, c.check, Needless, ReportedTwice)
	e.logf("without a fault: %s: settled after %s, %d writes", c.name, settled.Round(10*time.Millisecond), p.Writes())
}

// round makes a change, kills the process once or more, and checks what was written.
func (e *environment) round(ctx context.Context, p *process, c change) {
	GinkgoHelper()
	var kills []kill
	for left := c.writes; len(kills) == 0 || e.random.Float64() < again; left = max(left/3, 1) {
		kills = append(kills, e.choose(left))
	}
	kind, _, _ := strings.Cut(c.name, " ")
	what := c.name + ", killed"
	late := false
	for i, k := range kills {
		fired, arrives := make(chan struct{}), make(chan struct{})
		disarm := arm(p, k, fired, arrives, func() { _ = p.component.Kill() }) // its only error is that there is no process
		if i == 0 {
			c.make(ctx)
		}
		mode, text := string(k.mode), k.String()
		if _, killed := e.waitSettled(ctx, what, c.done, fired, p); !killed {
			// The write did not come, so the process is killed at rest.
			disarm()
			_ = p.component.Kill()
			mode, text = atRest, atRest
		}
		e.tally.byMode[mode]++
		e.tally.byChange[kind]++
		what += " " + text + ";"
		late = late || k.mode == Delayed
		e.restart(ctx, p)
		time.AfterFunc(k.delay, func() { close(arrives) })
	}
	settled, _ := e.waitSettled(ctx, what, c.done, nil, p)
	p.Delivered()

	checks := []func([]Write) []Violation{c.check, Needless, ReportedTwice}
	if late { // a write that arrives late may repeat that of the next process, or the other way round
		checks = checks[:1]
	}
	writes := e.conclude(ctx, what, checks...)
	for _, w := range writes {
		if w.ours() && !isReport(w) && w.Subresource != statusSubresource {
			e.tally.writes++
			if w.Effective {
				e.tally.effective++
			}
		}
	}
	e.tally.needless += len(Needless(writes))
	e.tally.rounds++
	e.tally.settled = append(e.tally.settled, settled)
	e.logf("%4d kills  settled after %5s  %s", e.tally.kills(), settled.Round(10*time.Millisecond), what)
}

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

// arm prepares an act at a chosen moment, which the returned function cancels. The act closes fired, and a delayed write
// arrives when that channel is closed.
func arm(p *process, k kill, fired, arrives chan struct{}, act func()) (disarm func()) {
	signalled := func() {
		act()
		close(fired)
	}
	p.Arm(nil)
	if k.mode != AnyMoment {
		p.Arm(&Trap{At: k.write, Mode: k.mode, Act: signalled, Release: arrives})
		return func() { p.Arm(nil) }
	}
	timer := time.AfterFunc(k.delay, signalled)
	return func() {
		if !timer.Stop() {
			<-fired
		}
	}
}
