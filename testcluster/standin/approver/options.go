// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	approverdecision "github.com/solonode/sno/approver/decision"
)

// Options are the operator's flags.
type Options struct {
	Stock bool
	// Config is the file with the switch of the flow for client certificates. It is read at the start.
	Config string
	// RetryInterval is the time between passes while requests are pending: Machines send no events.
	RetryInterval time.Duration
}

// DefaultOptions are those without any flags.
func DefaultOptions() *Options { return &Options{RetryInterval: 30 * time.Second} }

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
