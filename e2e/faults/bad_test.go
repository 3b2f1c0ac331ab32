// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	. "github.com/onsi/gomega"

	"github.com/solonode/sno/e2e/framework/suite"
)

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
	// watches, after each of which a controller reconciles. A controller that retries without waiting sends hundreds a
	// second; the total does not reveal it, because all others wait.
	mostRetries = 40
	// leastTried is the number of objects that the controllers must at least have tried to write.
	leastTried = 3
)

// badTime is how long the API server is bad.
func badTime() time.Duration {
	const long = 500
	switch {
	case *badFlag > 0:
		return *badFlag
	case *killCount >= long:
		return 10 * time.Minute
	}
	return 20 * time.Second
}

// badServer has the API server fail while the topology changes, and checks that everything then settles.
func (e *environment) badServer(ctx context.Context) {
	p := e.settledAll(ctx)
	pid := p.component.PID()
	random := rand.New(rand.NewPCG(*seed, 1)) //nolint:gosec // to repeat it
	began, flips := time.Now(), 0
	flip := func(faults *Faults, longest time.Duration) {
		faults.random = rand.New(rand.NewPCG(random.Uint64(), 2)) //nolint:gosec // to repeat it
		p.SetFaults(faults)
		e.flip().make(ctx)
		flips++
		suite.Elapse(ctx, min(longest, badTime()-time.Since(began)))
	}
	// At first no write is carried out. The controllers still see the flip, so that they retry.
	flip(&Faults{refuse: true, half: random.Uint32()}, refusal)
	refused := p.Figures().Writes
	target, most := busiest(refused)
	for time.Since(began) < badTime() {
		faults, pause := &Faults{share: faultShare, watch: longestWatch}, time.Duration(random.Int64N(int64(longestPause)))
		if random.IntN(4) == 0 {
			faults.share, pause = 1, outage
		}
		flip(faults, pause)
	}
	p.SetFaults(nil)
	at := p.Figures()
	settled, _ := e.waitSettled(ctx, "the cluster after a bad API server", nil, nil, p)
	e.logf("API server bad for %s, %d flips, %d requests; writes of %d objects refused, %d of %s; %s; settled after %s",
		badTime(), flips, at.Requests, len(refused), most, target, numbers(at.Injected), settled)
	writes := e.conclude(ctx, "a bad API server")
	suite.Require(suite.Faults,
		suite.Figure("A bad API server", "%s, %d flips, %d requests: %s", badTime(), flips, at.Requests, numbers(at.Injected)),
		suite.Row{
			What: "Requests of one client for one object, in " + refusal.String() + " in which it refuses all writes", Bound: fmt.Sprint(mostRetries),
			Measured: fmt.Sprintf("%d requests %s", most, target), Compared: "-", Held: most <= mostRetries,
		},
		suite.Row{
			What: "Writes that it carried out without an answer", Measured: fmt.Sprintf("%d; %d conditions repeated", p.Figures().Lost, len(ReportedTwice(writes))),
			Bound: "0 patches repeated", Compared: "-", Held: true,
		},
		suite.Row{What: "From its end to the final state", Measured: seconds(settled), Bound: "< " + recovery.String(), Compared: "-", Held: settled < recovery})
	Expect(len(refused)).To(BeNumerically(">=", leastTried), "the objects that the controllers tried to write while writes were refused")
	Expect(p.component.PID()).To(Equal(pid), "the process keeps running")
	Expect(string(suite.Must(os.ReadFile(p.component.LogPath())))).NotTo(ContainSubstring("panic"), "the log of %s", p.name)
	e.end(ctx, p)
}
