// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Half of OpenShift's operators have no controller-runtime, so the vendored module must not add it to the program, the
// tests or go.mod.
func TestNoControllerRuntime(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments []string
		// expected is a positive control: it must be in the output.
		expected string
	}{
		{"packages of the program", []string{"list", "-deps", ".."}, "github.com/solonode/sno/ingress"},
		{"packages of the program and the tests", []string{"list", "-deps", "-test", "../..."}, "github.com/solonode/sno/ingress"},
		{"modules that provide them", []string{"list", "-deps", "-test", "-f", "{{with .Module}}{{.Path}}{{end}}", "../..."}, "github.com/openshift/library-go"},
	} {
		var stderr strings.Builder
		command := exec.CommandContext(t.Context(), "go", test.arguments...)
		command.Env = append(command.Environ(), "GOWORK=off")
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(test.arguments, " "), err, stderr.String())
		}
		lines := strings.Fields(string(out))
		found := false
		var forbidden []string
		for _, line := range lines {
			found = found || line == test.expected
			if strings.HasPrefix(line, "sigs.k8s.io/controller-runtime") {
				forbidden = append(forbidden, line)
			}
		}
		if !found {
			t.Errorf("%s: %s is not among %d lines", test.name, test.expected, len(lines))
		}
		if diff := cmp.Diff([]string(nil), forbidden); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
