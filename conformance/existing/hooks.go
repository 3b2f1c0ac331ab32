// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
)

const (
	// OutageVariable is the environment variable with the length of an outage, in seconds.
	OutageVariable = "SNO_OUTAGE_SECONDS"
	// grace is how long a command may clean up after SIGTERM, before it is killed.
	grace = 30 * time.Second
	// readLimit is for the rest of the output: a process that has left the group can keep the pipe open.
	readLimit = time.Second
)

// hook is a line of the shell that acts on the cluster. Its success proves nothing: the run observes the cluster.
type hook struct {
	// name is that of its flag.
	name, line, artifacts string
	progress              io.Writer
}

// attach has the hooks perform the acts of the target. Without a hook the act stays nil.
func attach(target *cluster.Target, o Options) {
	of := func(name, line string) hook {
		return hook{name: name, line: line, artifacts: o.Artifacts, progress: o.Progress}
	}
	if o.RebootCommand != "" {
		h := of("reboot-command", o.RebootCommand)
		target.RestartNode = func(ctx context.Context, node string) error { return h.run(ctx, nil, node) }
	}
	if o.OutageCommand != "" {
		h := of("outage-command", o.OutageCommand)
		target.Outage = func(ctx context.Context, length time.Duration) error {
			return h.run(ctx, []string{OutageVariable + "=" + strconv.Itoa(int(length.Seconds()))})
		}
	}
	if o.UpgradeCommand != "" {
		h := of("upgrade-command", o.UpgradeCommand)
		target.Upgrade = func(ctx context.Context) error { return h.run(ctx, nil) }
	}
}

// run appends the arguments to the line, each as one word, and returns catalogue.ErrNotPerformed if the hook fails or
// is stopped. Its output is printed, and appended to a log of the artifacts.
func (h hook) run(ctx context.Context, env []string, args ...string) error {
	fmt.Fprintf(h.progress, "%s: running %s\n", h.name, h.line)
	var output bytes.Buffer
	to := []io.Writer{h.progress, &output}
	if h.artifacts != "" {
		log, err := h.log()
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }()
		to = append(to, log)
	}
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", h.line + ` "$@"`, "sh"}, args...)...)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), env...), grace
	err := runGroup(cmd, io.MultiWriter(to...))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("the command was stopped: %w", context.Cause(ctx))
	default:
		err = fmt.Errorf("the command failed: %w", err)
		lines := bytes.Split(bytes.TrimSpace(output.Bytes()), []byte("\n"))
		if last := lines[len(lines)-1]; len(last) > 0 {
			err = fmt.Errorf("%w: %.200s", err, last)
		}
	}
	fmt.Fprintf(h.progress, "%s: %v\n", h.name, err)
	return fmt.Errorf("%w: %s: %w", catalogue.ErrNotPerformed, h.name, err)
}

// runGroup runs a command in a process group of its own, which the end of the context ends with SIGTERM. What the
// command leaves in the group is killed.
func runGroup(cmd *exec.Cmd, output io.Writer) error {
	// A file, not a writer: Wait would wait for processes that the command leaves.
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = reader.Close() }()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(output, reader)
	}()
	cmd.Stdout, cmd.Stderr = writer, writer
	ownGroup(cmd)
	if err = cmd.Start(); err == nil {
		err = cmd.Wait()
		killGroup(cmd)
	}
	_ = writer.Close()
	_ = reader.SetReadDeadline(time.Now().Add(readLimit))
	<-copied
	return err
}

func (h hook) log() (io.WriteCloser, error) {
	if err := os.MkdirAll(h.artifacts, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder for artifacts: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(h.artifacts, h.name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the log of the %s: %w", h.name, err)
	}
	return file, nil
}
