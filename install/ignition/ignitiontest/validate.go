package ignitiontest

import (
	"bytes"
	"os/exec"
	"testing"
)

// Validate checks that ignition-validate has nothing to say about a config, not even a warning.
func Validate(t *testing.T, config []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Tool(t, "ignition-validate"), "-")
	cmd.Stdin = bytes.NewReader(config)
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("ignition-validate: %v\n%s\n%s", err, said, config)
	}
}
