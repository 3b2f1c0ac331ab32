package manager

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestBeside(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// Each waits for the other, which ends only when they run at the same time.
	one, other := make(chan struct{}), make(chan struct{})
	meets := func(tell, wait chan struct{}) func(context.Context) error {
		return func(ctx context.Context) error {
			close(tell)
			select {
			case <-wait:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if err := Beside(ctx, meets(one, other), meets(other, one)); err != nil {
		t.Errorf("reads do not run at the same time: %v", err)
	}
	first, second := errors.New("first"), errors.New("second") //nolint:err113 // told apart by what they are
	failed := make(chan struct{})
	late := func(context.Context) error { <-failed; return first }
	early := func(context.Context) error { close(failed); return second }
	if err := Beside(ctx, func(context.Context) error { return nil }, late, early); !errors.Is(err, first) {
		t.Errorf("error is %v, want that of the first in order, whichever was sooner", err)
	}
	if err := Beside(ctx); err != nil {
		t.Errorf("nothing to read is an error: %v", err)
	}
}
