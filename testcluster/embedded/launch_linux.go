package embedded

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// launch starts cmd so that it ends when this process ends, however that happens. The kernel sends the parent-death signal when the *thread* that
// forked goes away, and Go ends threads at will, so all components are started from one thread that is never given back.
// The caller calls release when cmd has ended; here there is nothing to release.
func launch(cmd *exec.Cmd) (release func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A process group of its own: Ctrl-C on the terminal is for this process, which decides what ends and in what order.
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
