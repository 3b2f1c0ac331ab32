// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Names of the components.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	// Kubelets is kwok, which simulates the kubelet of every node.
	Kubelets = "kwok"
)

var (
	// ErrRunning is returned by a start of a component that is running.
	ErrRunning = errors.New("component is running")
	// ErrStopped is returned by a start of a component whose cluster has been stopped.
	ErrStopped = errors.New("cluster is stopped")
)

// Component is one process of a cluster. It can be killed and started again, with the same address and data.
type Component struct {
	name    string
	program string
	log     string
	dir     string
	env     []string // in addition to that of this process
	// ended, if not nil, is called when a run has ended that neither this program nor its caller ended.
	ended func(c *Component, how string)
	// group means that what is left of the process group is killed when the process has ended.
	group bool

	mu      sync.Mutex
	args    []string
	run     *run
	retired bool
}

type run struct {
	cmd    *exec.Cmd
	since  time.Time
	exited chan struct{} // closed after Wait
	asked  bool          // it was asked to end; protected by the mutex of the component
}

// LogPath returns the path of the component's log file. A restart appends to it.
func (c *Component) LogPath() string { return c.log }

// PID returns the process ID, or 0 when the component does not run.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil || c.run.over() {
		return 0
	}
	return c.run.cmd.Process.Pid
}

// runningSince returns when the process was started, and false when none runs.
func (c *Component) runningSince() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil || c.run.over() {
		return time.Time{}, false
	}
	return c.run.since, true
}

// Start starts the component after Kill or a crash. It does not wait until it is ready, see Cluster.StartAPIServer.
func (c *Component) Start(ctx context.Context) error {
	_, err := c.start(ctx)
	return err
}

func (c *Component) start(ctx context.Context) (*run, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return nil, fmt.Errorf("start %s: %w", c.name, ErrStopped)
	}
	if c.run != nil && !c.run.over() {
		return nil, fmt.Errorf("start %s: %w", c.name, ErrRunning)
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer func() { _ = log.Close() }()
	// Not CommandContext: the process must outlive ctx.
	cmd := exec.Command(c.program, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = log, log
	since := time.Now()
	release, err := launch(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	r := &run{cmd: cmd, since: since, exited: make(chan struct{})}
	go func() {
		// The exit status is in the ProcessState.
		_ = cmd.Wait()
		release()
		if c.group {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		close(r.exited)
		c.mu.Lock()
		asked := r.asked || c.retired
		c.mu.Unlock()
		if c.ended != nil && !asked {
			c.ended(c, cmd.ProcessState.String())
		}
	}()
	c.run = r
	return r, nil
}

// Kill ends the component with SIGKILL and returns when it is gone. It does nothing when the component does not run.
func (c *Component) Kill() error {
	r := c.askedToEnd()
	if r == nil || r.over() {
		return nil
	}
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	<-r.exited
	return nil
}

// askedToEnd returns the current run, if any, and notes that its end is wanted.
func (c *Component) askedToEnd() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil {
		c.run.asked = true
	}
	return c.run
}

// retire kills the component permanently: later and concurrent starts fail.
func (c *Component) retire() error {
	c.mu.Lock()
	c.retired = true
	c.mu.Unlock()
	return c.Kill()
}

func (r *run) over() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// LogTail returns the end of the component's log, at most size bytes.
func (c *Component) LogTail(size int64) string {
	file, err := os.Open(c.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > size {
		if _, err := file.Seek(-size, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(content))
}
