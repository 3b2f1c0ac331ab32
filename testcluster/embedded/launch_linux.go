// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// launch starts cmd so that it ends when this process ends, however that happens. The kernel sends the parent-death
// signal when the *thread* that forked ends, and Go ends threads at any time, so one thread, which never ends, starts
// all components. The caller calls release when cmd has ended; here it does nothing.
func launch(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A separate process group: Ctrl-C on the terminal goes to this process, which decides the order of ends.
		Setpgid: true,
	}
	answer := make(chan error, 1)
	launcher() <- func() { answer <- cmd.Start() }
	return func() {}, <-answer
}

var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // never unlocked
		for f := range work {
			f()
		}
	}()
	return work
})
