// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os/exec"
	"strings"
	"testing"
)

// Half of OpenShift's operators have no controller-runtime, so the vendored module must not add it to the program. The
// tests here use it.
func TestNoControllerRuntime(t *testing.T) {
	const expected, forbidden = "github.com/solonode/sno/console", "sigs.k8s.io/controller-runtime"
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "..")
	command.Env = append(command.Environ(), "GOWORK=off")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("listing the packages of the program: %v\n%s", err, stderr.String())
	}
	found := false
	for _, line := range strings.Fields(string(out)) {
		found = found || line == expected
		if strings.HasPrefix(line, forbidden) {
			t.Errorf("the program contains %s", line)
		}
	}
	if !found {
		t.Errorf("the program does not contain %s", expected)
	}
}
