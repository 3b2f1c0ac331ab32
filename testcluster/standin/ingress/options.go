// SPDX-License-Identifier: Apache-2.0

package ingress

import "flag"

// Options are the operator's flags.
type Options struct {
	CreateDefault bool
	Stock         bool
	// MinReadySeconds is how long a router's pod must be ready before it counts as available: 30 in the stock operator,
	// less for tests that only wait for rollouts.
	MinReadySeconds int
	// Canary maintains the stock operator's canary DaemonSet, in an existing namespace.
	Canary bool
	// RouterImage is an image that serves the router's ports, and its readiness on the last of them at /healthz/ready.
	// Empty: one that only simulated nodes run.
	RouterImage string
	// SharedHostPorts lets a single router share its ports with its successor. RouterImage must meet the conditions of
	// ingress.Host.WithSharedHostPorts: its readiness is checked by readyCommand.
	SharedHostPorts bool
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options { return &Options{MinReadySeconds: stockMinReadySeconds} }

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.CreateDefault, "create-default", o.CreateDefault, "Create the default IngressController when there is none.")
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's operator instead of by the vendored module.")
	flags.IntVar(&o.MinReadySeconds, "min-ready-seconds", o.MinReadySeconds, "Seconds for which a router's pod must have been ready to be available.")
	flags.BoolVar(&o.Canary, "canary", o.Canary, "Maintain the DaemonSet openshift-ingress-canary/ingress-canary.")
	flags.StringVar(&o.RouterImage, "router-image", o.RouterImage, "Image of the router. Without it, one that only simulated nodes run.")
	flags.BoolVar(&o.SharedHostPorts, "shared-host-ports", o.SharedHostPorts, "Start a single router's new pod before the old one ends.")
}
