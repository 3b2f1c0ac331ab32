// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// launch starts cmd in a separate process group, and a shell that waits on a pipe which only this process holds open:
// when this process ends, however that happens, the shell reads the end of the pipe and kills the group. The caller
// calls release when cmd has ended, so that the watcher cannot kill a later process with the same ID.
func launch(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	alive, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the pipe of the watcher: %w", err)
	}
	defer func() { _ = alive.Close() }()
	if err := cmd.Start(); err != nil {
		_ = hold.Close()
		return nil, err
	}
	watcher := exec.Command("/bin/sh", "-c", `cat >/dev/null; kill -s KILL -- "-$0" 2>/dev/null`, strconv.Itoa(cmd.Process.Pid))
	watcher.Stdin = alive
	watcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := watcher.Start(); err != nil {
		_ = hold.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("start the watcher: %w", err)
	}
	return func() {
		_ = hold.Close()
		_ = watcher.Wait()
	}, nil
}
