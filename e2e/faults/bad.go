// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/e2e/framework"
)

// BadServer are the figures of the time with a bad API server.
type BadServer struct {
	Time     time.Duration
	Flips    int
	Requests Rate
	Faults   map[string]int
	// Tried is the number of objects that the controllers tried to write while all writes were refused, and Busiest the
	// target with the most writes in that time.
	Tried   int
	Busiest Requests
	// Lost is the number of writes that were carried out although the controller got no answer.
	Lost int
	// Reported is the number of conditions that were written again with another time.
	Reported int
	// Settled is the time from the end until everything had its final state.
	Settled time.Duration
}

const (
	faultShare = 0.3
	// longestWatch bounds a watch of the bad API server.
	longestWatch = 5 * time.Second
	// longestPause bounds the time between two flips, and outage is a time in which every request fails.
	longestPause, outage = 6 * time.Second, 3 * time.Second
	// recovery bounds the time until everything has its final state: reflectors and failed reconciliations back off.
	recovery = 90 * time.Second
	// refusal is the time in which every write is refused.
	refusal = 8 * time.Second
	// mostRetries limits the writes of one client to one object in that time. The delay of the queue doubles from 5 ms,
	// and begins anew when the controllers restart, two seconds after a flip: about 20 writes. The rest is for events of
	// watches, after each of which a controller reconciles.
	mostRetries = 40
	// leastTried is the number of objects that the controllers must at least have tried to write.
	leastTried = 3
)

// badServer has the API server fail while the topology changes, and checks that everything then settles.
func (e *environment) badServer(ctx context.Context) (*BadServer, error) {
	p, err := e.settledAll(ctx)
	if err != nil {
		return nil, err
	}
	pid, _, err := e.identity(ctx, p)
	if err != nil {
		return nil, err
	}
	figures := &BadServer{Time: e.options.BadTime}
	random := rand.New(rand.NewPCG(e.options.Seed, 1))
	began := time.Now()
	flip := func(faults *Faults, longest time.Duration) error {
		faults.random = rand.New(rand.NewPCG(random.Uint64(), 2))
		p.SetFaults(faults)
		if err := e.flip().make(ctx); err != nil {
			return err
		}
		figures.Flips++
		return pauseFor(ctx, min(longest, figures.Time-time.Since(began)))
	}
	// At first no write is carried out. The controllers still see the flip, so that they retry.
	if err := flip(&Faults{refuse: true, half: random.Uint32()}, refusal); err != nil {
		return nil, err
	}
	refused := p.Figures().Received
	figures.Tried = len(writesByTarget(refused))
	figures.Busiest = BusiestOf(refused)
	for time.Since(began) < figures.Time {
		faults, pause := &Faults{share: faultShare, watch: longestWatch}, time.Duration(random.Int64N(int64(longestPause)))
		if random.IntN(4) == 0 {
			faults.share, pause = 1, outage
		}
		if err := flip(faults, pause); err != nil {
			return nil, err
		}
	}
	p.SetFaults(nil)
	at := p.Figures()
	figures.Requests, figures.Faults = RateOf(at.Received, time.Since(began)), at.Injected
	if figures.Settled, err = e.waitSettled(ctx, nil, nil, p); err != nil {
		return figures, fmt.Errorf("after a bad API server: %w\n%s", err, p.component.LogTail(logTail))
	}
	figures.Lost = p.Figures().Lost
	e.logf("API server bad for %s, %d flips: %s; writes of %d objects refused, %s; %v; settled after %s",
		figures.Time, figures.Flips, figures.Requests, figures.Tried, figures.Busiest, figures.Faults, figures.Settled)
	if figures.Tried < leastTried {
		return figures, fmt.Errorf("%w: the controllers tried to write %d objects while writes were refused, want at least %d", errFault, figures.Tried, leastTried)
	}
	writes, err := e.writes(ctx)
	if err != nil {
		return figures, err
	}
	figures.Reported = len(ReportedTwice(writes, ours))
	found, err := e.check(ctx, writes)
	if err != nil {
		return figures, err
	}
	found = append(found, BackedOff(refused, mostRetries)...)
	if figures.Settled > recovery {
		found = append(found, Violation{InvariantSame, fmt.Sprintf("settled %s after the end of the faults, want at most %s", figures.Settled, recovery)})
	}
	again, _, err := e.identity(ctx, p)
	if err != nil {
		return figures, err
	}
	found = append(found, SameProcess(pid, again)...)
	output, err := os.ReadFile(p.component.LogPath())
	if err != nil {
		return figures, fmt.Errorf("read the log of %s: %w", p.name, err)
	}
	if bytes.Contains(output, []byte("panic")) {
		found = append(found, Violation{InvariantProcess, "its log has a panic"})
	}
	if len(found) > 0 {
		return figures, fmt.Errorf("%w with a bad API server:\n%s\nwrites:\n%s", ErrInvariant, texts(found), listing(writes))
	}
	return figures, e.end(ctx, p)
}

// SameProcess compares the ID of a process with the one before.
func SameProcess(before, now int) []Violation {
	if now == before && now != 0 {
		return nil
	}
	return []Violation{{InvariantProcess, fmt.Sprintf("its ID was %d and is %d", before, now)}}
}

// SameHolder compares the holder of a Lease with the one before.
func SameHolder(before, now string) []Violation {
	if now == before && now != "" {
		return nil
	}
	return []Violation{{InvariantLease, fmt.Sprintf("the holder was %q and is %q", before, now)}}
}

// identity returns the ID of a process, 0 if it is this one, and the holder of its Lease.
func (e *environment) identity(ctx context.Context, p *process) (int, string, error) {
	lease := &coordinationv1.Lease{}
	if err := e.Cluster.Client().Get(ctx, client.ObjectKey{Namespace: framework.SystemNamespace, Name: p.lease}, lease); err != nil {
		return 0, "", fmt.Errorf("read the Lease %s: %w", p.lease, err)
	}
	pid := 0
	if p.component != nil {
		pid = p.component.PID()
	}
	return pid, ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// settledAll starts kubectl-sno and waits until it has settled.
func (e *environment) settledAll(ctx context.Context) (*process, error) {
	e.modules = framework.AllModules()
	e.started++
	p, err := e.runAll(ctx, fmt.Sprintf("kubectl-sno-%d", e.started))
	if err != nil {
		return nil, err
	}
	return p, e.undisturbed(ctx, p, change{name: "start", make: func(context.Context) error { return nil }})
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
