// SPDX-License-Identifier: Apache-2.0

package leftovers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/install/leftovers"
)

// A clean node has no leftovers; one of upstream's installer has a unit.
func ExampleCheck() {
	root, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root) //nolint:errcheck // of the example
	units := filepath.Join(root, "etc/systemd/system")
	if err := os.MkdirAll(units, 0o700); err != nil {
		fmt.Println(err)
		return
	}
	check := func() {
		found, err := leftovers.Check(context.Background(), root, leftovers.Options{})
		if err == nil {
			err = leftovers.Print(os.Stdout, found)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	check()
	if err := os.WriteFile(filepath.Join(units, "bootkube.service"), nil, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	check()
	// Output:
	// Nothing of the installation is left.
	// KIND   PATH                                   WHY
	// unit   /etc/systemd/system/bootkube.service   finishes the installation after the restart, with upstream's installer
}
