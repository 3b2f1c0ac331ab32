package harness_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain lets all tests run at once, however few processors there are: they wait for a minute to pass, on clusters of their own.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
