// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
)

// Process is a program to run in parallel with the components.
type Process struct {
	// Name is its name for Program and of its log.
	Name string
	Path string
	Args []string
	// Dir is its working directory. Empty: the cluster's folder.
	Dir string
	// Env are variables in addition to those of this process.
	Env []string
	// Ended, if not nil, is called with the exit status when it has ended although neither Kill, Terminate nor Stop was
	// called. It may start the component again.
	Ended func(p *Component, how string)
	// Group means that its children end with it, as in a container. Without that only a signal of their own ends them.
	Group bool
}

// Run starts a program in parallel with the components, such as a controller under test. Like them it ends with the
// cluster, also after a crash, and its output is in the file name.log of the cluster's folder.
func (c *Cluster) Run(ctx context.Context, name, program string, args ...string) (*Component, error) {
	return c.RunProcess(ctx, Process{Name: name, Path: program, Args: args})
}

// RunProcess is Run with more settings.
func (c *Cluster) RunProcess(ctx context.Context, process Process) (*Component, error) {
	p := &Component{
		name: process.Name, program: process.Path, args: process.Args, log: filepath.Join(c.dir, process.Name+".log"),
		dir: cmp.Or(process.Dir, c.dir), env: process.Env, ended: process.Ended, group: process.Group,
	}
	c.programsMu.Lock()
	defer c.programsMu.Unlock()
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	c.programs = append(c.programs, p)
	return p, nil
}

// Program returns the last program of that name that Run started, or nil.
func (c *Cluster) Program(name string) *Component {
	c.programsMu.Lock()
	defer c.programsMu.Unlock()
	for _, program := range slices.Backward(c.programs) {
		if program.name == name {
			return program
		}
	}
	return nil
}

// Exited is closed when the current run of the component has ended; it is nil before the first.
func (c *Component) Exited() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil {
		return nil
	}
	return c.run.exited
}

// ExitCode returns how the last run of the component ended; -1 while it runs or when a signal ended it.
func (c *Component) ExitCode() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil || !c.run.over() {
		return -1
	}
	return c.run.cmd.ProcessState.ExitCode()
}

// Terminate ends the component with SIGTERM and returns when it has ended. When ctx is done first, it kills the
// component and returns the context's error.
func (c *Component) Terminate(ctx context.Context) error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	exited := c.Exited()
	if exited == nil {
		return nil
	}
	select {
	case <-exited:
		return nil
	case <-ctx.Done():
		if err := c.Kill(); err != nil {
			return err
		}
		return fmt.Errorf("%s did not end by itself: %w", c.name, ctx.Err())
	}
}

func (c *Component) signal(signal syscall.Signal) error {
	r := c.askedToEnd()
	if r == nil || r.over() {
		return nil
	}
	if err := r.cmd.Process.Signal(signal); err != nil && !r.over() {
		return fmt.Errorf("terminate %s: %w", c.name, err)
	}
	return nil
}
