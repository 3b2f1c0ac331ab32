// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/install/snapshot"
)

// A copy of a database is refused: it may have been written while it was copied.
func ExampleVerify() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the example
	file := filepath.Join(dir, "db")
	if err := os.WriteFile(file, make([]byte, 16384), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err = snapshot.Verify(file)
	fmt.Println(errors.Is(err, snapshot.ErrNoSnapshot))
	// Output: true
}
