// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Bash is a shell for a person, or for commands from a script.
type Bash struct {
	// Programs are in its PATH, by name.
	Programs map[string]string
	// Scratch is an empty folder for its files.
	Scratch string
	// Environment is added to that of this process.
	Environment []string
	// Interactive is for a person at a terminal.
	Interactive bool
	In          io.Reader
	Out, Err    io.Writer
}

// startup is read by an interactive shell: what was started in the background ends with it.
const startup = "PS1='$ '\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n"

// waitDelay bounds the end of a shell that was killed.
const waitDelay = 5 * time.Second

// Run runs the shell until it exits or ctx ends, and ends everything that was started in it. The error of a shell that
// exits with another code than 0 is an *exec.ExitError.
func (s Bash) Run(ctx context.Context) error {
	bin, scratch, rc := filepath.Join(s.Scratch, "bin"), filepath.Join(s.Scratch, "tmp"), filepath.Join(s.Scratch, "bashrc")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.Mkdir(scratch, 0o700), os.WriteFile(rc, []byte(startup), 0o600)); err != nil {
		return fmt.Errorf("make the folders of the shell: %w", err)
	}
	for name, program := range s.Programs {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("put %s into the PATH: %w", name, err)
		}
	}
	args := []string{"--noprofile", "--norc"}
	if s.Interactive {
		args = []string{"--noprofile", "--rcfile", rc, "-i"}
	}
	cmd := exec.CommandContext(ctx, "bash", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "TMPDIR="+scratch)
	cmd.Env = append(cmd.Env, s.Environment...)
	cmd.WaitDelay = waitDelay
	if s.Interactive {
		// It takes the terminal, and gives each of its jobs a process group.
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGHUP) }
		return cmd.Run() //nolint:wrapcheck // the exit code is the caller's
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start bash: %w", err)
	}
	err := cmd.Wait()
	// Its background jobs. There may be none.
	_ = group()
	return err //nolint:wrapcheck // the exit code is the caller's
}
