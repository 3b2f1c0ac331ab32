// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	approverdecision "github.com/solonode/sno/approver/decision"
	"github.com/solonode/sno/approver/kubelet"
)

// Options are the operator's flags.
type Options struct {
	Stock bool
	// Config is the file with the switch of the flow for client certificates. It is read at the start.
	Config string
	// RetryInterval is the time between passes while requests are pending: Machines and kubelets send no events.
	RetryInterval time.Duration
	// Call returns the certificate chain that a node's kubelet presents.
	Call func(context.Context, *corev1.Node) ([]*x509.Certificate, error)
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options {
	return &Options{RetryInterval: 30 * time.Second, Call: (&kubelet.Dialer{}).ServingCertificate}
}

// BindFlags implements standin.Options.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Stock, "stock", o.Stock, "Decide as today's operator instead of by the vendored module.")
	flags.StringVar(&o.Config, "config", o.Config, "File as in ConfigMap machine-approver-config; a missing or unreadable one disables nothing.")
}

// clientFlowDisabled reports whether the configuration disables the flow for client certificates. As in the stock
// approver (U-APP-2), a configuration that cannot be read disables nothing; the error is for the log.
func (o *Options) clientFlowDisabled() (bool, error) {
	text, err := os.ReadFile(o.Config)
	if o.Config == "" || errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	disabled := false
	if err == nil {
		disabled, err = approverdecision.NodeClientDisabled(string(text))
	}
	if err != nil {
		return false, fmt.Errorf("reading --config=%s: %w", o.Config, err)
	}
	return disabled, nil
}
