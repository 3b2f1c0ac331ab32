// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

// Where conditions are written: on the operator's own resource, or nowhere.
const (
	StatusOperator = "operator"
	StatusNone     = "none"
)

// Options are the flags of every module.
type Options struct {
	DryRun         bool
	ForceConflicts bool
	StatusTarget   string // StatusOperator or StatusNone
}

// BindFlags declares the flags. The current values are the defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "Send dry runs only: report what would change, and write nothing.")
	flags.BoolVar(&o.ForceConflicts, "force-conflicts", o.ForceConflicts,
		"Take fields that other managers own. A release restores only values that the module has remembered.")
	flags.StringVar(&o.StatusTarget, "status-target", cmp.Or(o.StatusTarget, StatusOperator), "Where to write conditions: operator or none.")
}

// Validate returns an ErrOptions for invalid flags.
func (o *Options) Validate() error {
	if o.StatusTarget == StatusOperator || o.StatusTarget == StatusNone {
		return nil
	}
	return fmt.Errorf("%w: --status-target=%s; want %s or %s", ErrOptions, o.StatusTarget, StatusOperator, StatusNone)
}
