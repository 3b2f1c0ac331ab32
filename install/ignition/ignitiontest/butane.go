package ignitiontest

import (
	"bytes"
	"os/exec"
	"testing"
)

// Butane returns what Butane makes of its own config, which may name files below dir.
func Butane(t *testing.T, dir, config string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Tool(t, "butane"), "--strict", "--files-dir", dir)
	cmd.Stdin = bytes.NewBufferString(config)
	var said bytes.Buffer
	cmd.Stderr = &said
	made, err := cmd.Output()
	if err != nil {
		t.Fatalf("butane: %v\n%s", err, &said)
	}
	return made
}
