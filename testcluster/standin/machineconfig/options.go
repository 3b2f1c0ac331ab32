// SPDX-License-Identifier: Apache-2.0

package machineconfig

import "flag"

// Options are the operator's flags.
type Options struct{ Stock bool }

// DefaultOptions are those without any flags.
func DefaultOptions() *Options { return &Options{} }

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's operator instead of by the vendored module.")
}
