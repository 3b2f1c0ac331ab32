// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/kubelet"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

// Options are the operator's flags.
type Options struct {
	Stock bool
	// Config is the file with the switch of the flow for client certificates. It is read at the start.
	Config string
	// RetryInterval is the time between passes while requests are pending: Machines and kubelets send no events.
	RetryInterval time.Duration
	// MaxPending is how long a request may be pending before that is reported.
	MaxPending time.Duration

	// call returns the certificate chain that a node's kubelet presents.
	call func(context.Context, *corev1.Node) ([]*x509.Certificate, error)
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{RetryInterval: 30 * time.Second, MaxPending: approver.DefaultAgeLimits.Pending, call: (&kubelet.Dialer{}).ServingCertificate}
}

// BindFlags adds the flags, with the current options as defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Use the rules of the stock approver instead of the vendored module.")
	flags.StringVar(&o.Config, "config", o.Config, "File with the configuration, as in ConfigMap machine-approver-config; a missing or unreadable one disables nothing.")
	flags.DurationVar(&o.RetryInterval, "retry-every", o.RetryInterval, "Interval between decisions on requests that are pending.")
	flags.DurationVar(&o.MaxPending, "max-pending", o.MaxPending, "How long a request may be pending before a condition reports it.")
}

// Validate reports invalid flags, and arguments, of which there must be none.
func (o *Options) Validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("%w: unexpected argument %q", ErrOptions, arguments[0])
	case o.RetryInterval <= 0:
		return fmt.Errorf("%w: --retry-every=%s; want more than 0", ErrOptions, o.RetryInterval)
	case o.MaxPending <= 0:
		return fmt.Errorf("%w: --max-pending=%s; want more than 0", ErrOptions, o.MaxPending)
	}
	return nil
}

func (o *Options) rules() rules {
	if o.Stock {
		return stockRules()
	}
	return vendoredRules()
}

// clientFlowDisabled reports whether the configuration disables the flow for client certificates. As in the stock
// approver (U-APP-2), a configuration that cannot be read disables nothing; the error is for the log.
func (o *Options) clientFlowDisabled() (bool, error) {
	if o.Config == "" {
		return false, nil
	}
	text, err := os.ReadFile(o.Config)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading --config: %w", err)
	}
	disabled, err := approver.NodeClientDisabled(string(text))
	if err != nil {
		return false, fmt.Errorf("reading --config=%s: %w", o.Config, err)
	}
	return disabled, nil
}
