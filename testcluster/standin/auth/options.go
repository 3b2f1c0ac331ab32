// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Options are the operator's flags, and what tests change.
type Options struct {
	Stock             bool
	WellKnownPath     string
	WellKnownInterval time.Duration
	// WellKnownServerName is the name in the API servers' certificates, which need not contain the endpoints' addresses.
	WellKnownServerName string
	// ConnectTo replaces endpoints by other addresses, both as host:port: an EndpointSlice may not contain loopback
	// addresses.
	ConnectTo map[string]string
	// Tries are the number and interval of requests before an API server counts as failed.
	Tries wait.Backoff
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options {
	return &Options{
		WellKnownPath: "/.well-known/oauth-authorization-server", WellKnownInterval: 10 * time.Second, WellKnownServerName: "kubernetes.default.svc",
		ConnectTo: map[string]string{}, Tries: wait.Backoff{Steps: 3, Duration: time.Second},
	}
}

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's operator instead of by the vendored module.")
	flags.StringVar(&o.WellKnownPath, "well-known-path", o.WellKnownPath, "Path that every API server must serve.")
	flags.Func("connect-to", "`ENDPOINT=ADDRESS`, both host:port, connects to another address than the endpoint's; may be repeated.", func(pair string) error {
		from, to, _ := strings.Cut(pair, "=")
		for _, address := range []string{from, to} {
			if _, _, err := net.SplitHostPort(address); err != nil {
				return fmt.Errorf("want host:port=host:port: %w", err)
			}
		}
		o.ConnectTo[from] = to
		return nil
	})
}
