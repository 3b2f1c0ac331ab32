// SPDX-License-Identifier: Apache-2.0

//go:build unix

package existing

import (
	"os/exec"
	"syscall"
)

// ownGroup has a signal of a terminal not reach the command, so that the end of the context decides how it ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
