// SPDX-License-Identifier: Apache-2.0

package console

import "flag"

// Options are the operator's flags.
type Options struct {
	// Downloads includes the downloads Deployment and its budget. Without it both are ignored, as in a release whose
	// cluster-version-operator has the Deployment as a static manifest.
	Downloads bool
	Stock     bool
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options { return &Options{Downloads: true} }

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Downloads, "downloads", o.Downloads, "Maintain the downloads Deployment; false if it is a static manifest.")
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's operator instead of by the vendored module.")
}
