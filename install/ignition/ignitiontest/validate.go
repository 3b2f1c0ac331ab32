// SPDX-License-Identifier: Apache-2.0

package ignitiontest

import (
	"bytes"
	"os/exec"
	"testing"
)

// Validate checks that ignition-validate prints nothing, not even a warning.
func Validate(t *testing.T, config []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Tool(t, "ignition-validate"), "-")
	cmd.Stdin = bytes.NewReader(config)
	if output, err := cmd.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("ignition-validate: %v\n%s\n%s", err, output, config)
	}
}
