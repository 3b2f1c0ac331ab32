package leftovers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/solonode/sno/install/leftovers"
)

// A node of upstream's installer has one of these.
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
	show := func() {
		found, err := leftovers.Check(context.Background(), root, leftovers.Options{})
		if err == nil {
			err = leftovers.Print(os.Stdout, found)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	show()
	if err := os.WriteFile(filepath.Join(units, "bootkube.service"), nil, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	show()
	// Output:
	// Nothing of the installation is left.
	// KIND   PATH                                   WHY
	// unit   /etc/systemd/system/bootkube.service   ends the installation after the restart, with upstream's installer
}
