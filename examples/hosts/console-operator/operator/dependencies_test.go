package operator

import (
	"os/exec"
	"strings"
	"testing"
)

// Half of OpenShift's operators have no controller-runtime. Vendoring the module must not bring it into the program; the tests
// here use it to talk to a real API server.
func TestNoControllerRuntime(t *testing.T) {
	const expected, forbidden = "github.com/solonode/sno/console", "sigs.k8s.io/controller-runtime"
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "..")
	command.Env = append(command.Environ(), "GOWORK=off")
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("listing the packages of the program: %v\n%s", err, complaint.String())
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
