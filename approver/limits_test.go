package approver_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/solonode/sno/approver"
)

func TestLimit(t *testing.T) {
	limit := approver.Limit{Approvals: 2, Window: time.Minute}
	budget := approver.Spent(now.Add(-10*time.Second), now.Add(-2*time.Minute)) // in any order
	for i, tt := range []struct {
		after time.Duration
		ok    bool
		wait  time.Duration
	}{
		{0, true, 0},
		{0, false, 50 * time.Second},
		{49 * time.Second, false, time.Second},
		{50 * time.Second, true, 0},
		{50 * time.Second, false, 10 * time.Second},
		{time.Minute, true, 0},
	} {
		after, ok, wait := limit.Take(budget, now.Add(tt.after))
		if ok != tt.ok || wait != tt.wait {
			t.Errorf("%d: %t, %s", i, ok, wait)
		}
		budget = after
	}
	if _, ok, wait := (approver.Limit{Window: time.Minute}).Take(approver.Budget{}, now); ok || wait != time.Minute {
		t.Errorf("no approvals at all: %t, %s", ok, wait)
	}
}

// Taking from a budget leaves it as it was.
func TestBudgetIsAValue(t *testing.T) {
	limit := approver.Limit{Approvals: 2, Window: time.Minute}
	first, _, _ := limit.Take(approver.Budget{}, now)
	for range 3 {
		if _, ok, _ := limit.Take(first, now); !ok {
			t.Error("an approval of another copy counts")
		}
	}
	// Also where some approvals are too old to count.
	full := approver.Spent(now.Add(-2*time.Minute), now.Add(-time.Second), now)
	for range 3 {
		if _, ok, wait := limit.Take(full, now); ok || wait != 59*time.Second {
			t.Errorf("%t, %s", ok, wait)
		}
		limit.Take(full, now.Add(59*time.Second))
	}
}

// However the approvals fall, there are never more than the limit within any window.
func TestLimitHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	limit := approver.Limit{Approvals: 5, Window: time.Minute}
	var taken []time.Time
	var budget approver.Budget
	at := now
	for range 2000 {
		at = at.Add(time.Duration(r.IntN(20)) * time.Second)
		var ok bool
		if budget, ok, _ = limit.Take(budget, at); ok {
			taken = append(taken, at)
		}
	}
	for i := limit.Approvals; i < len(taken); i++ {
		if taken[i].Sub(taken[i-limit.Approvals]) < limit.Window {
			t.Fatalf("%d within %s", limit.Approvals+1, taken[i].Sub(taken[i-limit.Approvals]))
		}
	}
	if len(taken) < 500 {
		t.Errorf("only %d of 2000 were let through", len(taken))
	}
}
