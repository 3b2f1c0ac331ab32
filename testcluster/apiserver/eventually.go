// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	"github.com/solonode/sno/testcluster/eventually"
)

// Eventually waits until the check returns nil, and fails the test with its last error.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	eventually.Succeeds(t, what, check)
}

// NoError ends the test on an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
