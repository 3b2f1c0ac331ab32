package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
)

// Run starts a program beside the components, such as a controller that is to be tried out. Like them it ends with the cluster,
// also after a crash, and its output is kept in the cluster's folder, in a file called name.log.
func (c *Cluster) Run(ctx context.Context, name, program string, args ...string) (*Component, error) {
	p := &Component{name: name, program: program, args: args, log: filepath.Join(c.dir, name+".log"), dir: c.dir}
	c.programsMu.Lock()
	defer c.programsMu.Unlock()
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	c.programs = append(c.programs, p)
	return p, nil
}

// Program is the last program of that name that Run started; nil when there is none.
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

// Exited is closed when the current life of the component is over; nil before it was ever started.
func (p *Component) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	return p.run.exited
}

// ExitCode is how the last life of the component ended; -1 while it runs or when a signal ended it.
func (p *Component) ExitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !p.run.over() {
		return -1
	}
	return p.run.cmd.ProcessState.ExitCode()
}

// Terminate asks the component to end with SIGTERM and returns when it has; when ctx ends first, it is killed and the context's
// error returned.
func (p *Component) Terminate(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	exited := p.Exited()
	if exited == nil {
		return nil
	}
	select {
	case <-exited:
		return nil
	case <-ctx.Done():
		if err := p.Kill(); err != nil {
			return err
		}
		return fmt.Errorf("%s did not end by itself: %w", p.name, ctx.Err())
	}
}

func (p *Component) signal(signal syscall.Signal) error {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r == nil || r.over() {
		return nil
	}
	if err := r.cmd.Process.Signal(signal); err != nil && !r.over() {
		return fmt.Errorf("terminate %s: %w", p.name, err)
	}
	return nil
}

// LogTail is the end of the component's log, at most size bytes.
func (p *Component) LogTail(size int64) string { return p.logTail(size) }
