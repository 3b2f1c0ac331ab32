// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"

	"github.com/solonode/sno/render/store"
)

// Sync reconciles once. In a cycle it is called again and must write nothing if nothing has changed.
type Sync func(ctx context.Context) error

// Loop is one control loop.
type Loop struct {
	// Name is unique in a run, such as "kube-apiserver: target config".
	Name string
	// Writes selects what the loop may write.
	Writes []store.Pattern
	// AllowStale selects objects that later loops may change after this one has read them. Each entry needs a reason.
	AllowStale []store.Pattern
	// New returns the function that reconciles with the clients of the session. It is called once per run.
	New func(*store.Session) (Sync, error)
}

// Step is one loop that runs once, or a cycle.
type Step struct {
	Loops []Loop
	// MaxRounds is the limit of a cycle, 0 for loops that run once.
	MaxRounds int
}

// Once returns the step that runs a loop once.
func Once(l Loop) Step { return Step{Loops: []Loop{l}} }

// Cycle returns the step that runs the loops in order until a round writes nothing, at most limit rounds.
func Cycle(limit int, loops ...Loop) Step { return Step{Loops: loops, MaxRounds: limit} }

// Stateless returns the New of a loop that keeps nothing between reconciliations.
func Stateless(reconcile func(context.Context, *store.Session) error) func(*store.Session) (Sync, error) {
	return func(s *store.Session) (Sync, error) {
		return func(ctx context.Context) error { return reconcile(ctx, s) }, nil
	}
}
