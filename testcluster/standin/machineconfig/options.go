// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"flag"
	"time"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
)

// Options are the operator's flags, and what tests change.
type Options struct {
	Stock       bool
	DrainPolicy machineconfig.DrainPolicy
	// ShutdownSettle is how long the grace periods must be stable before they are written, because each change restarts
	// the node.
	ShutdownSettle time.Duration
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options {
	return &Options{DrainPolicy: machineconfig.DrainNever, ShutdownSettle: decision.ShutdownDebounce}
}

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Process drain requests as today's operator instead of with the vendored module, and nothing else.")
}
