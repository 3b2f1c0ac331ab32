// SPDX-License-Identifier: Apache-2.0

package ignitiontest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/solonode/sno/install/internal/fixture"
)

// Tool returns the path of a program that tools/run builds.
func Tool(t *testing.T, name string) string {
	t.Helper()
	dir := fixture.Must(os.Getwd())
	run := filepath.Join(dir, "tools", "run")
	for ; ; run = filepath.Join(dir, "tools", "run") {
		if _, err := os.Stat(run); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above the test has tools/run")
		}
		dir = filepath.Dir(dir)
	}
	cmd := exec.CommandContext(t.Context(), run, "-path", name)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s, which this test needs: %v\n%s", name, err, &stderr)
	}
	return string(bytes.TrimSpace(path))
}
