package operator

import (
	"errors"
	"flag"
	"fmt"
	"time"
)

// ErrOptions is returned for flags that do not make sense.
var ErrOptions = errors.New("invalid flags")

// Options are the operator's flags.
type Options struct {
	// CreateDefault makes the default IngressController when there is none.
	CreateDefault bool
	// Stock decides as today's stock operator does, without the vendored module.
	Stock bool
	// MinReadySeconds is how long a router's pod must have been ready before it counts as available. The stock operator says 30; a proof that
	// only waits for the end of rollouts may say less.
	MinReadySeconds int
	// Canary makes the DaemonSet by which the stock operator asks for the default router, in a namespace that must be there.
	Canary bool
	// RouterImage is an image that serves on the router's ports, and whether it is ready on the last of them at /healthz/ready. Empty: one
	// that nobody can run, for clusters whose nodes are simulated.
	RouterImage string
	// RevertPlacement puts the default IngressController's nodePlacement back to what it was when this process first saw it.
	RevertPlacement bool
	// RevertInterval is the least time between two such reverts; 0 reverts at once.
	RevertInterval time.Duration
}

// DefaultOptions are those without any flags.
func DefaultOptions() Options { return Options{MinReadySeconds: stockMinReadySeconds} }

// BindFlags adds the flags. What the options hold now is the default.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.CreateDefault, "create-default", o.CreateDefault, "Create the default IngressController when there is none.")
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's stock operator does instead of calling the vendored module.")
	flags.IntVar(&o.MinReadySeconds, "min-ready-seconds", o.MinReadySeconds, "Seconds for which a router's pod must have been ready before it counts as available.")
	flags.BoolVar(&o.Canary, "canary", o.Canary, "Make the DaemonSet openshift-ingress-canary/ingress-canary.")
	flags.StringVar(&o.RouterImage, "router-image", o.RouterImage, "Image of the router. Without it, one that only simulated nodes run.")
	flags.BoolVar(&o.RevertPlacement, "fight", o.RevertPlacement, "For tests of faults: take other people's nodePlacement off the default IngressController.")
	flags.DurationVar(&o.RevertInterval, "revert-every", o.RevertInterval, "With --fight: least time between two reverts; 0 reverts at once.")
}

// Validate reports flags that contradict each other, and arguments, of which there are none.
func (o *Options) Validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case o.MinReadySeconds < 0:
		return fmt.Errorf("%w: --min-ready-seconds=%d; want 0 or more", ErrOptions, o.MinReadySeconds)
	case o.RevertInterval < 0:
		return fmt.Errorf("%w: --revert-every=%s; want 0 or more", ErrOptions, o.RevertInterval)
	case o.RevertInterval > 0 && !o.RevertPlacement:
		return fmt.Errorf("%w: --revert-every needs --fight", ErrOptions)
	}
	return nil
}

func (o *Options) rules() rules {
	if o.Stock {
		return stockRules()
	}
	return vendoredRules()
}
