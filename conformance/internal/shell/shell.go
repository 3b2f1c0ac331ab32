// SPDX-License-Identifier: Apache-2.0

// Package shell runs commands that users give as one text, as git runs those of its settings.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

var (
	// ErrFailed is returned if a command does not end with exit code 0.
	ErrFailed = errors.New("the command failed")
	// ErrStopped is returned if the end of the context has stopped a command.
	ErrStopped = errors.New("the command was stopped")
)

// Grace is how long a command may clean up after SIGTERM, before it is killed.
const Grace = 30 * time.Second

// Command is a line of the shell.
type Command struct {
	Line string
	// Args are appended to the line, each as one word.
	Args []string
	// Env is added to the environment, as name=value.
	Env []string
	// Out and Err are called with each line of the standard output and of the standard error, never concurrently.
	Out, Err func(line string)
}

// Run runs a command in a process group of its own, and waits until it ends. The end of the context ends the group with
// SIGTERM, and with SIGKILL after Grace. Processes that the command leaves in the group are killed; left reports
// whether there were any.
func (c Command) Run(ctx context.Context) (left bool, err error) {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", c.Line + ` "$@"`, "sh"}, c.Args...)...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.WaitDelay = Grace
	ownGroup(cmd)
	output := &output{}
	defer output.close()
	// Files, not writers: Wait would wait for processes that the command leaves.
	if cmd.Stdout, err = output.pipe(c.Out); err != nil {
		return false, err
	}
	if cmd.Stderr, err = output.pipe(c.Err); err != nil {
		return false, err
	}
	if err = cmd.Start(); err == nil {
		err = cmd.Wait()
		left = killGroup(cmd)
	}
	last := output.close()
	switch {
	case err == nil:
		return left, nil
	case ctx.Err() != nil:
		return left, fmt.Errorf("%w: %w", ErrStopped, context.Cause(ctx))
	case last != "":
		return left, fmt.Errorf("%w: %w: %.200s", ErrFailed, err, last)
	default:
		return left, fmt.Errorf("%w: %w", ErrFailed, err)
	}
}
