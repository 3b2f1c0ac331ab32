// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Within polls until done returns true, and reports whether it did before the limit. The end of the limit is not an
// error.
func Within(ctx context.Context, every, limit time.Duration, done func(context.Context) (bool, error)) (bool, error) {
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

// WithinBackoff is Within with growing pauses, for refused requests.
func WithinBackoff(ctx context.Context, first, limit time.Duration, done func(context.Context) (bool, error)) (bool, error) {
	backoff := wait.Backoff{Duration: first, Factor: backoffFactor, Jitter: 0.1, Steps: math.MaxInt32, Cap: maxBackoff}
	return bounded(ctx, limit, done, func(ctx context.Context, done wait.ConditionWithContextFunc) error {
		return backoff.DelayFunc().Until(ctx, true, true, done)
	})
}

// EvictionRefusal returns why an eviction is refused, without names that change from run to run.
func EvictionRefusal(refused error) string {
	if apierrors.IsTooManyRequests(refused) {
		return "the eviction is refused: it would violate the pod's disruption budget"
	}
	return "the eviction fails: " + fmt.Sprint(refused)
}
