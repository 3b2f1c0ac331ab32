// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

// Options are the operator's flags.
type Options struct {
	Stock             bool
	WellKnownPath     string
	WellKnownInterval time.Duration
	// WellKnownServerName is the name in the API servers' certificates, which need not contain the endpoints' addresses.
	WellKnownServerName string
	// ConnectTo replaces endpoints by other addresses, both as host:port, for test clusters: an EndpointSlice may not
	// contain loopback addresses.
	ConnectTo Addresses

	// tries are the number and interval of requests before an API server counts as failed.
	tries wait.Backoff
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{
		WellKnownPath: "/.well-known/oauth-authorization-server", WellKnownInterval: 10 * time.Second, WellKnownServerName: "kubernetes.default.svc",
		tries: wait.Backoff{Steps: 3, Duration: time.Second},
	}
}

// BindFlags adds the flags, with the current options as defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Use the rules of the stock operator instead of the vendored module.")
	flags.StringVar(&o.WellKnownPath, "well-known-path", o.WellKnownPath, "Path that every API server must serve.")
	flags.DurationVar(&o.WellKnownInterval, "well-known-every", o.WellKnownInterval, "Interval of requests to the API servers.")
	flags.StringVar(&o.WellKnownServerName, "well-known-server-name", o.WellKnownServerName, "Name that the certificates of the API servers must have.")
	flags.Var(&o.ConnectTo, "connect-to", "For test clusters: ENDPOINT=ADDRESS, both host:port, connects to another address than the endpoint's; may be repeated.")
}

// Validate reports invalid flags, and arguments, of which there must be none.
func (o *Options) Validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case !strings.HasPrefix(o.WellKnownPath, "/"):
		return fmt.Errorf("%w: --well-known-path=%s; want a path that begins with /", ErrOptions, o.WellKnownPath)
	case o.WellKnownInterval <= 0:
		return fmt.Errorf("%w: --well-known-every=%s; want more than 0", ErrOptions, o.WellKnownInterval)
	}
	return nil
}

func (o *Options) rules() rules {
	if o.Stock {
		return stockRules()
	}
	return vendoredRules()
}

// Addresses maps host:port to host:port. It is a flag.Value.
type Addresses map[string]string

// String implements flag.Value.
func (a *Addresses) String() string {
	if a == nil {
		return ""
	}
	var pairs []string
	for _, from := range slices.Sorted(maps.Keys(*a)) {
		pairs = append(pairs, from+"="+(*a)[from])
	}
	return strings.Join(pairs, ",")
}

// Set implements flag.Value and adds one pair.
func (a *Addresses) Set(pair string) error {
	from, to, ok := strings.Cut(pair, "=")
	for _, address := range []string{from, to} {
		if _, _, err := net.SplitHostPort(address); err != nil || !ok {
			return fmt.Errorf("%w: %q; want host:port=host:port", ErrOptions, pair)
		}
	}
	if *a == nil {
		*a = Addresses{}
	}
	(*a)[from] = to
	return nil
}
