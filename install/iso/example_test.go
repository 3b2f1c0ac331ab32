// SPDX-License-Identifier: Apache-2.0

package iso_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/install/iso"
)

// A file that is not a live ISO is refused, and nothing is written.
func ExampleEmbed() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the example
	in := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(in, []byte("hello"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	err = iso.Embed(in, filepath.Join(dir, "out.iso"), []byte(`{"ignition":{"version":"3.2.0"}}`))
	_, statErr := os.Stat(filepath.Join(dir, "out.iso"))
	fmt.Println(err != nil, os.IsNotExist(statErr))
	// Output: true true
}
