// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain runs all tests in parallel on few processors too: they mostly wait for a minute to pass.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
