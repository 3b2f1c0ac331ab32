// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/internal/shell"
)

// OutageVariable is the environment variable with the length of an outage, in seconds.
const OutageVariable = "SNO_OUTAGE_SECONDS"

// hook is a command that acts on the cluster. Its success proves nothing: the run observes the cluster.
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

// run returns catalogue.ErrNotPerformed if the hook fails or is stopped.
func (h hook) run(ctx context.Context, env []string, args ...string) error {
	log, err := h.log()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	say := func(line string) {
		fmt.Fprintf(h.progress, "%s: %s\n", h.name, line)
		fmt.Fprintln(log, line)
	}
	say("running " + h.line)
	left, err := shell.Command{Line: h.line, Args: args, Env: env, Out: say, Err: say}.Run(ctx)
	if left {
		say("processes that it left were killed")
	}
	if err != nil {
		say(err.Error())
		return fmt.Errorf("%w: %s: %w", catalogue.ErrNotPerformed, h.name, err)
	}
	return nil
}

// log is a file of the artifacts, to which every run of the hook is appended.
func (h hook) log() (io.WriteCloser, error) {
	if h.artifacts == "" {
		return nowhere{io.Discard}, nil
	}
	if err := os.MkdirAll(h.artifacts, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder for artifacts: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(h.artifacts, h.name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the log of the %s: %w", h.name, err)
	}
	return file, nil
}

type nowhere struct{ io.Writer }

// Close does nothing.
func (nowhere) Close() error { return nil }
