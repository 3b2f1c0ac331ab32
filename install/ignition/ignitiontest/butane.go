// SPDX-License-Identifier: Apache-2.0

package ignitiontest

import (
	"bytes"
	"os/exec"
	"testing"
)

// Butane converts a Butane config, which may refer to files in dir.
func Butane(t *testing.T, dir, config string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Tool(t, "butane"), "--strict", "--files-dir", dir)
	cmd.Stdin = bytes.NewBufferString(config)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("butane: %v\n%s", err, &stderr)
	}
	return text
}
