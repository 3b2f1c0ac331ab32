package loop

import (
	"context"

	"github.com/solonode/sno/render/store"
)

// Sync reconciles once. It is called again, in a cycle, and must then write nothing if nothing has changed.
type Sync func(ctx context.Context) error

// Loop is one control loop.
type Loop struct {
	// Name is unique in a run, such as "kube-apiserver: target config".
	Name string
	// Writes selects what the loop may write.
	Writes []store.Pattern
	// Outdated selects objects that later loops change after this one has read them, because it does not go by what they
	// change. Each entry needs a reason where it is declared.
	AllowStale []store.Pattern
	// New returns the function that reconciles over the clients of the session. It is called once per run.
	New func(*store.Session) (Sync, error)
}

// Step is one loop that runs once, or a cycle.
type Step struct {
	Loops []Loop
	// Max is how many rounds a cycle has at most, 0 for loops that run once.
	MaxRounds int
}

// Once returns the step that runs a loop once.
func Once(l Loop) Step { return Step{Loops: []Loop{l}} }

// Cycle returns the step that runs the loops in their order, round after round, until a round writes nothing, at most limit rounds.
func Cycle(limit int, loops ...Loop) Step { return Step{Loops: loops, MaxRounds: limit} }
