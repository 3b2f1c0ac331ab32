// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"os"
	"strings"
)

// checkBundle writes the bundle and a catalogue into a temporary folder. The program checks them.
func checkBundle(ctx context.Context, r repo) (err error) {
	scratch, err := os.MkdirTemp("", "sno-bundle-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	digest := "@sha256:" + strings.Repeat("0", 64)
	return r.run(ctx, "hack", "go", "run", "./cmd/bundle", "-out", scratch,
		"-image", "registry.invalid/sno/kubectl-sno"+digest, "-bundle-image", "registry.invalid/sno/bundle"+digest)
}
