// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"os/exec"
	"syscall"
)

// ownGroup has a signal of a terminal not reach the command, so that Run decides how it ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup reports whether any process was left.
func killGroup(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil }
