package operator

import (
	"errors"
	"flag"
	"fmt"
	"time"
)

// ErrOptions is returned for flags that do not make sense.
var ErrOptions = errors.New("invalid flags")

// Options are the operator's flags. The zero value is the default.
type Options struct {
	// CreateDefault makes the default IngressController when there is none.
	CreateDefault bool
	// Stock decides as today's stock operator does, without the vendored module.
	Stock bool
	// RouterImage is an image that serves on the router's ports, and whether it is ready on the last of them at /healthz/ready. Empty: one
	// that nobody can run, for clusters whose nodes are simulated.
	RouterImage string
	// Fight puts the default IngressController's nodePlacement back to what it was when this process first saw it.
	Fight bool
	// RevertEvery is the least time between two such reverts; 0 reverts at once.
	RevertEvery time.Duration
}

// BindFlags adds the flags.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.CreateDefault, "create-default", o.CreateDefault, "Create the default IngressController when there is none.")
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's stock operator does instead of calling the vendored module.")
	flags.StringVar(&o.RouterImage, "router-image", o.RouterImage, "Image of the router. Without it, one that only simulated nodes run.")
	flags.BoolVar(&o.Fight, "fight", o.Fight, "For tests of faults: take other people's nodePlacement off the default IngressController.")
	flags.DurationVar(&o.RevertEvery, "revert-every", o.RevertEvery, "With --fight: least time between two reverts; 0 reverts at once.")
}

// Validate reports flags that contradict each other, and arguments, of which there are none.
func (o *Options) Validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case o.RevertEvery < 0:
		return fmt.Errorf("%w: --revert-every=%s; want 0 or more", ErrOptions, o.RevertEvery)
	case o.RevertEvery > 0 && !o.Fight:
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
