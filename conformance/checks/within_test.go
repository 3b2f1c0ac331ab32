package checks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWithinBackoff: what is refused is asked for again after longer and longer pauses, as long as there is time.
func TestWithinBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := RealTimes()
		var asked []time.Duration
		began := time.Now()
		granted, err := withinBackoff(t.Context(), times.Poll, times.Converge, func(context.Context) (bool, error) {
			asked = append(asked, time.Since(began))
			return false, nil
		})
		if granted || err != nil || time.Since(began) != times.Converge {
			t.Errorf("granted %t after %s, %v", granted, time.Since(began), err)
		}
		for i := 1; i < len(asked); i++ {
			pause := asked[i] - asked[i-1]
			if pause < times.Poll || pause > maxBackoff+maxBackoff/10 {
				t.Errorf("pause %d is %s", i, pause)
			}
			if i == len(asked)-1 && pause < maxBackoff {
				t.Errorf("the last pause is %s, want %s: they do not grow", pause, maxBackoff)
			}
		}
		if asked[0] != 0 || len(asked) < int(times.Converge/maxBackoff)*9/10 {
			t.Errorf("asked at %v", asked)
		}
	})
}
