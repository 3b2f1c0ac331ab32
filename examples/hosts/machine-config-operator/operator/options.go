// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/solonode/sno/machineconfig"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

// Options are the operator's flags.
type Options struct {
	Stock       bool
	DrainPolicy string
	// ShutdownBound limits the time of a graceful shutdown. ShutdownSettle is how long the grace periods must be stable
	// before they are written, because each change restarts the node.
	ShutdownBound, ShutdownSettle time.Duration
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{
		DrainPolicy: string(machineconfig.DrainNever), ShutdownBound: machineconfig.DefaultShutdownBound, ShutdownSettle: machineconfig.ShutdownDebounce,
	}
}

// BindFlags adds the flags, with the current options as defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Process drain requests as the stock operator does instead of with the vendored module, and nothing else.")
	flags.StringVar(&o.DrainPolicy, "drain-policy", o.DrainPolicy, "Nodes to drain where the control plane is SingleReplica: never, or workers.")
	flags.DurationVar(&o.ShutdownBound, "shutdown-bound", o.ShutdownBound, "Limit of a graceful shutdown; below 10s there is none.")
	flags.DurationVar(&o.ShutdownSettle, "shutdown-settle", o.ShutdownSettle, "How long the grace periods must be stable before they are written.")
}

// Validate reports invalid flags, and arguments, of which there must be none.
func (o *Options) Validate(arguments []string) error {
	switch policy := machineconfig.DrainPolicy(o.DrainPolicy); {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case policy != machineconfig.DrainNever && policy != machineconfig.DrainWorkers:
		return fmt.Errorf("%w: --drain-policy=%s; want %s or %s", ErrOptions, policy, machineconfig.DrainNever, machineconfig.DrainWorkers)
	case o.ShutdownBound < 0 || o.ShutdownSettle < 0:
		return fmt.Errorf("%w: --shutdown-bound=%s, --shutdown-settle=%s; want 0 or more", ErrOptions, o.ShutdownBound, o.ShutdownSettle)
	}
	return nil
}

func (o *Options) rules() rules {
	if o.Stock {
		return stockRules()
	}
	return vendoredRules(machineconfig.DrainPolicy(o.DrainPolicy))
}
