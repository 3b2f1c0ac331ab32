package patchtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// patience bounds every wait. It is far longer than anything takes.
	patience = time.Minute
	glance   = 50 * time.Millisecond
)

// Eventually waits until the check is content, and fails the test with its last complaint.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), glance, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, errors.Join(last, err))
	}
}
