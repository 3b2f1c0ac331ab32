// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"flag"
	"time"
)

// Options are the operator's flags, and what tests change.
type Options struct {
	Stock bool
	// Endpoints are URLs of etcd, separated by commas. It needs no certificates.
	Endpoints       string
	MembersInterval time.Duration
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options { return &Options{MembersInterval: 10 * time.Second} }

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Run today's guard controller instead of the vendored module. It reads no members.")
	flags.StringVar(&o.Endpoints, "etcd-endpoints", o.Endpoints, "URLs of etcd, separated by commas.")
}
