package approver

import (
	"slices"
	"time"
)

// Limit is how many requests may be approved within any Window. It keeps a fault, in the inventory or in this module, from
// becoming a flood.
type Limit struct {
	Approvals int
	Window    time.Duration
}

// DefaultLimit lets 25 nodes join, or 50 renew, within ten minutes.
var DefaultLimit = Limit{Approvals: 50, Window: 10 * time.Minute}

// Budget is when approvals were made, oldest first. The zero value has none. It is a value: Take returns another one.
type Budget struct{ spent []time.Time }

// Spent is a budget of which approvals were made at those times, such as a process finds in the cluster when it starts.
func Spent(at ...time.Time) Budget {
	return Budget{slices.SortedFunc(slices.Values(at), time.Time.Compare)}
}

// Take takes one approval. Where the limit is reached it returns false, and how long it is until there is one again. A limit without a
// number of approvals or without a window lets none through.
func (l Limit) Take(b Budget, now time.Time) (after Budget, ok bool, wait time.Duration) {
	within := slices.DeleteFunc(slices.Clone(b.spent), func(at time.Time) bool { return now.Sub(at) >= l.Window })
	switch {
	case l.Window <= 0:
		return b, false, DefaultLimit.Window
	case l.Approvals <= 0:
		return Budget{within}, false, l.Window
	case len(within) < l.Approvals:
		return Budget{append(within, now)}, true, 0
	}
	return Budget{within}, false, within[len(within)-l.Approvals].Add(l.Window).Sub(now)
}
