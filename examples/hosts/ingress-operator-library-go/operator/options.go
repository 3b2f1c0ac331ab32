// SPDX-License-Identifier: Apache-2.0

package operator

import "flag"

// Options are the operator's flags. The zero value is the default.
type Options struct {
	CreateDefault bool
}

// BindFlags adds the flags.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.CreateDefault, "create-default", o.CreateDefault, "Create the default IngressController when there is none.")
}
