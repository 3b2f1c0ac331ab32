// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/solonode/sno/testcluster/apiserver"
)

// inTerminal runs the program in a terminal, presses Ctrl-C after the text of until, if any, and returns the output and
// the exit code.
func inTerminal(t *testing.T, until string, args ...string) (string, int) {
	t.Helper()
	command := apiserver.Command(io.Discard, args...)
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
			if _, err := terminal.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break // the program has ended
		}
	}
	_ = command.Wait() // the exit code is checked instead
	return strings.ReplaceAll(screen.String(), "\r\n", "\n"), command.ProcessState.ExitCode()
}

// Colours and progress are for terminals only.
func TestTerminal(t *testing.T) {
	args := []string{"diff", "--must-gather", "testdata/module/testdata/gather/sno-with-workers/input"}
	screen, code := inTerminal(t, "", args...)
	contains(t, "the terminal", screen, "\x1b[32m+  replicas: 1\x1b[0m|\x1b[31m-  replicas: 2\x1b[0m|Planning ingress (1/6)")
	var out strings.Builder
	plain := apiserver.Command(&out, args...)
	err := plain.Run()
	contains(t, "without a terminal it", out.String(), "+  replicas: 1|!\x1b|!Planning")
	if code != 1 || err == nil || plain.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %d, without a terminal with %v", code, err)
	}
}
