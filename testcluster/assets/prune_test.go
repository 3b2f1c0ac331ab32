// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What was used in the last day, the newest folders, and everything else in the parent stay.
func TestCheckoutFolder(t *testing.T) {
	parent := t.TempDir()
	for name, days := range map[string]int{"x-today": 0, "x-newer": 2, "x-older": 3, "x-oldest": 4, "another": 9} {
		if err := os.MkdirAll(filepath.Join(parent, name, "files"), 0o755); err != nil {
			t.Fatal(err)
		}
		at := time.Now().AddDate(0, 0, -days)
		if err := os.Chtimes(filepath.Join(parent, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	use := func(name string, want ...string) {
		t.Helper()
		if err := CheckoutFolder(filepath.Join(parent, name), "x-*"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, list(t, parent)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", name, diff)
		}
	}
	use("x-older", "another", "x-newer", "x-older", "x-today")
	use("x-new", "another", "x-new", "x-older", "x-today")
	use("x-newest", "another", "x-new", "x-newest", "x-older", "x-today")
}
