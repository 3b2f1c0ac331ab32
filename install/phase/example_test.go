// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/solonode/sno/install/phase"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the example
	file := filepath.Join(dir, "snapshot.db")
	phases := []phase.Phase{{
		Name:  "snapshot",
		Limit: time.Minute,
		Done: func(context.Context) (bool, error) {
			_, err := os.Stat(file)
			return err == nil, nil
		},
		Run: func(context.Context, *phase.Progress) error {
			fmt.Println("saving")
			return os.WriteFile(file, []byte("data"), 0o600)
		},
	}}
	for range 2 {
		fmt.Println(phase.Run(context.Background(), phases, phase.Options{}))
	}
	// Output:
	// saving
	// <nil>
	// <nil>
}
