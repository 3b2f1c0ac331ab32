// SPDX-License-Identifier: Apache-2.0

package eventually

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	timeout  = 2 * time.Minute
	interval = 50 * time.Millisecond
)

// Succeeds waits until the check returns nil, and fails the test with its last error. It may be called in a clean-up.
func Succeeds(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), interval, timeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, errors.Join(last, err))
	}
}
