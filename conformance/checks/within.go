// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// within polls until done returns true, and reports whether it did before the limit. The end of the limit is not an
// error.
func within(ctx context.Context, every, limit time.Duration, done func(context.Context) (bool, error)) (bool, error) {
	return bounded(ctx, limit, done, func(ctx context.Context, done wait.ConditionWithContextFunc) error {
		return wait.PollUntilContextCancel(ctx, every, true, done)
	})
}

func bounded(ctx context.Context, limit time.Duration, done wait.ConditionWithContextFunc, poll func(context.Context, wait.ConditionWithContextFunc) error) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reached := false
	err := poll(limited, func(ctx context.Context) (bool, error) {
		var err error
		reached, err = done(ctx)
		if ctx.Err() != nil {
			return false, nil
		}
		return reached, err
	})
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		err = nil
	}
	return reached, err
}

const (
	// Each pause is backoffFactor times the previous one, at most maxBackoff. kubectl drain retries every 5 s.
	backoffFactor = 1.5
	maxBackoff    = 5 * time.Second
)

// withinBackoff is within with growing pauses, for refused requests.
func withinBackoff(ctx context.Context, first, limit time.Duration, done func(context.Context) (bool, error)) (bool, error) {
	backoff := wait.Backoff{Duration: first, Factor: backoffFactor, Jitter: 0.1, Steps: math.MaxInt32, Cap: maxBackoff}
	return bounded(ctx, limit, done, func(ctx context.Context, done wait.ConditionWithContextFunc) error {
		return backoff.DelayFunc().Until(ctx, true, true, done)
	})
}
