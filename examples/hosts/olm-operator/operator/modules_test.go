// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mostModules is how many modules the operator may be compiled from, itself included.
const mostModules = 20

// modules returns the modules of the compiled packages, as `go list -deps` does.
func modules(t *testing.T, pattern string) []string {
	t.Helper()
	// The tag leaves out Kubernetes' functions for fuzz tests, and with them sigs.k8s.io/randfill.
	command := exec.CommandContext(t.Context(), "go", "list", "-tags=notest", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern)
	command.Env = append(command.Environ(), "GOWORK=off")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("listing the packages of %s: %v\n%s", pattern, err, stderr.String())
	}
	all := strings.Fields(string(out))
	slices.Sort(all)
	return slices.Compact(all)
}

// TestModules limits what the operator brings into a cluster. It adds nothing to the module that it vendors.
func TestModules(t *testing.T) {
	const self, vendored = "github.com/solonode/sno/examples/hosts/olm-operator", "github.com/solonode/sno/topology"
	got := modules(t, "..")
	if len(got) > mostModules {
		t.Errorf("%d modules, at most %d are allowed: %v", len(got), mostModules, got)
	}
	want := append([]string{self}, modules(t, vendored)...)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
