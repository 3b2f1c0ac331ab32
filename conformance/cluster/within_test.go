// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWithinBackoff: refused requests are retried with growing pauses until the limit.
func TestWithinBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := RealTimes()
		var requests []time.Duration
		began := time.Now()
		granted, err := WithinBackoff(t.Context(), times.Poll, times.Converge, func(context.Context) (bool, error) {
			requests = append(requests, time.Since(began))
			return false, nil
		})
		if granted || err != nil || time.Since(began) != times.Converge {
			t.Errorf("granted %t after %s, %v", granted, time.Since(began), err)
		}
		for i := 1; i < len(requests); i++ {
			pause := requests[i] - requests[i-1]
			if pause < times.Poll || pause > maxBackoff+maxBackoff/10 {
				t.Errorf("pause %d is %s", i, pause)
			}
			if i == len(requests)-1 && pause < maxBackoff {
				t.Errorf("the last pause is %s, want %s", pause, maxBackoff)
			}
		}
		if requests[0] != 0 || len(requests) < int(times.Converge/maxBackoff)*9/10 {
			t.Errorf("requests at %v", requests)
		}
	})
}
