// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const pollInterval = 20 * time.Millisecond

// ErrLost is returned when requests are not answered.
var ErrLost = errors.New("traffic is lost")

// Since returns the requests that were sent at or after that time and have ended, in the order in which they ended.
func (g *Generator) Since(when time.Time) []Sample {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.samples), func(s Sample) bool { return s.Sent.Before(when) })
}

// WaitAnswered waits until all requests sent from now on have been answered for the duration stable. After timeout it
// returns ErrLost with the last problem.
func (g *Generator) WaitAnswered(ctx context.Context, stable, timeout time.Duration) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		good, problem := streak(g.Since(begin))
		if good >= stable {
			return nil
		}
		select {
		case <-ctx.Done():
			if problem == "" {
				problem = "no request has ended"
			}
			return fmt.Errorf("%w: %s for %s: %s", ErrLost, g.endpoint.URL, time.Since(begin).Round(time.Second), problem)
		case <-again.C:
		}
	}
}

func streak(samples []Sample) (good time.Duration, problem string) {
	samples = slices.SortedStableFunc(slices.Values(samples), func(a, b Sample) int { return a.Sent.Compare(b.Sent) })
	var since time.Time
	for _, s := range samples {
		switch {
		case s.Problem != "":
			since, good, problem = time.Time{}, 0, s.Problem
		case since.IsZero():
			since = s.Sent
		default:
			good = s.Sent.Sub(since)
		}
	}
	return good, problem
}
