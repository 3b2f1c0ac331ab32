// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"flag"
	"fmt"
	"time"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
)

// Options are the operator's flags.
type Options struct {
	Stock       bool
	DrainPolicy string
	// ShutdownBound limits the time of a graceful shutdown. ShutdownSettle is how long the grace periods must be stable
	// before they are written, because each change restarts the node.
	ShutdownBound, ShutdownSettle time.Duration
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options {
	return &Options{
		DrainPolicy: string(machineconfig.DrainNever), ShutdownBound: machineconfig.DefaultShutdownBound, ShutdownSettle: decision.ShutdownDebounce,
	}
}

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Process drain requests as today's operator instead of with the vendored module, and nothing else.")
	flags.StringVar(&o.DrainPolicy, "drain-policy", o.DrainPolicy, "Nodes to drain where the control plane is SingleReplica: never, or workers.")
	flags.DurationVar(&o.ShutdownBound, "shutdown-bound", o.ShutdownBound, "Limit of a graceful shutdown; below 10s there is none.")
	flags.DurationVar(&o.ShutdownSettle, "shutdown-settle", o.ShutdownSettle, "How long the grace periods must be stable before they are written.")
}

// Validate implements standin.Options.
func (o *Options) Validate() error {
	policy := machineconfig.DrainPolicy(o.DrainPolicy)
	if policy != machineconfig.DrainNever && policy != machineconfig.DrainWorkers || o.ShutdownBound < 0 || o.ShutdownSettle < 0 {
		return fmt.Errorf("--drain-policy is %s or %s, and --shutdown-bound and --shutdown-settle are 0 or more", //nolint:err113 // for a person
			machineconfig.DrainNever, machineconfig.DrainWorkers)
	}
	return nil
}
