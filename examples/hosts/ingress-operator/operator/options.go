// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"fmt"
	"time"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

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
	// RevertPlacement reverts the default IngressController's nodePlacement to the first one that this process has read.
	RevertPlacement bool
	// RevertInterval is the minimum time between two reverts; 0 reverts at once.
	RevertInterval time.Duration
}

// DefaultOptions are those without any flags.
func DefaultOptions() Options { return Options{MinReadySeconds: stockMinReadySeconds} }

// BindFlags adds the flags, with the current options as defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.CreateDefault, "create-default", o.CreateDefault, "Create the default IngressController when there is none.")
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Use the rules of the stock operator instead of the vendored module.")
	flags.IntVar(&o.MinReadySeconds, "min-ready-seconds", o.MinReadySeconds, "Seconds for which a router's pod must have been ready before it counts as available.")
	flags.BoolVar(&o.Canary, "canary", o.Canary, "Maintain the DaemonSet openshift-ingress-canary/ingress-canary.")
	flags.StringVar(&o.RouterImage, "router-image", o.RouterImage, "Image of the router. Without it, one that only simulated nodes run.")
	flags.BoolVar(&o.SharedHostPorts, "shared-host-ports", o.SharedHostPorts, "Start the new pod of a single router with host ports before the old one ends.")
	flags.BoolVar(&o.RevertPlacement, "revert-placement", o.RevertPlacement, "For tests of faults: take other people's nodePlacement off the default IngressController.")
	flags.DurationVar(&o.RevertInterval, "revert-every", o.RevertInterval, "With --revert-placement: least time between two reverts; 0 reverts at once.")
}

// Validate reports contradictory flags, and arguments, of which there must be none.
func (o *Options) Validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case o.SharedHostPorts && o.Stock:
		return fmt.Errorf("%w: --shared-host-ports is a rule of the vendored module, not one of --stock", ErrOptions)
	case o.MinReadySeconds < 0:
		return fmt.Errorf("%w: --min-ready-seconds=%d; want 0 or more", ErrOptions, o.MinReadySeconds)
	case o.RevertInterval < 0:
		return fmt.Errorf("%w: --revert-every=%s; want 0 or more", ErrOptions, o.RevertInterval)
	case o.RevertInterval > 0 && !o.RevertPlacement:
		return fmt.Errorf("%w: --revert-every needs --revert-placement", ErrOptions)
	}
	return nil
}

func (o *Options) rules() rules {
	if o.Stock {
		return stockRules()
	}
	return vendoredRules(o.SharedHostPorts)
}
