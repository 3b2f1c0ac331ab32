package cli_test

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/solonode/sno/patch/patchtest"
)

// interrupt is what a terminal makes of Ctrl-C.
const interrupt = "\x03"

// inTerminal runs the program itself in a terminal, as a person does. When it shows the text of until, Ctrl-C is pressed; empty: never. It returns what
// was on the screen and the exit code.
func inTerminal(t *testing.T, until string, args ...string) (string, int) {
	t.Helper()
	command := patchtest.Command(io.Discard, args...)
	command.Stdin, command.Stdout, command.Stderr = nil, nil, nil
	command.Env = append(command.Env, "TERM=xterm", "NO_COLOR=")
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 50, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close() //nolint:errcheck // it was only read
	var screen bytes.Buffer
	for piece := make([]byte, 4096); ; {
		n, err := terminal.Read(piece)
		screen.Write(piece[:n])
		if until != "" && strings.Contains(screen.String(), until) {
			until = ""
			if _, err := terminal.WriteString(interrupt); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break // the program has ended, and nobody has the other side
		}
	}
	var exit *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(screen.String(), "\r\n", "\n"), command.ProcessState.ExitCode()
}

// A person with a cluster in front of them goes through every verb, in a terminal.
func TestSession(t *testing.T) {
	c := newCluster(t)
	before := spec(t, c.router())
	on := func(args ...string) []string { return append(args, "--kubeconfig", c.kubeconfig) }
	for _, step := range []struct {
		args []string
		// until is when Ctrl-C is pressed.
		until string
		code  int
		want  []string
	}{
		{args: on("topology"), want: []string{"SingleReplica", "ingress"}},
		{args: []string{"topology", "decide", "--platform", "None", "--control-plane-replicas", "1", "--workers", "2"}, want: []string{"SingleReplica"}},
		{args: []string{"topology", "decide", "--table"}, want: []string{"SingleReplica", "HighlyAvailable"}},
		{args: on("plan", "--modules", "ingress"), want: []string{"FIELD", "replicas", "cluster-ingress-operator"}},
		{args: on("diff", "--modules", "ingress"), code: 1, want: []string{"\x1b[31m-  replicas: 2\x1b[0m", "\x1b[32m+  replicas: 1\x1b[0m"}},
		{args: on("apply", "--modules", "ingress", "--dry-run=server"), want: []string{"server dry run"}},
		{args: on("diff", "--modules", "ingress"), code: 1, want: []string{"\x1b[32m+  replicas: 1\x1b[0m"}},
		{args: on("apply", "--modules", "ingress"), want: []string{"ingresscontroller"}},
		{args: on("diff", "--modules", "ingress")},
		{args: on("status", "--modules", "ingress"), want: []string{"ingress"}},
		{
			args:  on("run", "--modules", "ingress", "--leader-elect-resource-namespace=sno-system", "--metrics-bind-address=0", "--health-probe-bind-address=0"),
			until: "Patch changed state", want: []string{`reason="`},
		},
		{args: on("release", "ingress"), want: []string{"ingresscontroller"}},
		{args: on("diff", "--modules", "ingress", "-o", "name"), code: 2, want: []string{"-o"}},
		{args: []string{"render", "--modules", "ingress", "--image", "example.com/sno:1"}, want: []string{"kind: Deployment", "image: example.com/sno:1"}},
		{args: on("wait-for-stable", "--for=1s", "--timeout=2s"), code: 1, want: []string{"WAITS FOR", "openshift-console/console", "not stable after 2s"}},
		{args: []string{"completion", "bash"}, want: []string{"complete"}},
	} {
		screen, code := inTerminal(t, step.until, step.args...)
		if code != step.code {
			t.Errorf("%v ends with %d, want %d:\n%s", step.args, code, step.code, screen)
		}
		for _, want := range step.want {
			if !strings.Contains(screen, want) {
				t.Errorf("%v does not show %q:\n%s", step.args, want, screen)
			}
		}
	}
	if after := spec(t, c.router()); after != before {
		t.Errorf("in the end the router is\n%s\nand was\n%s", after, before)
	}
}
