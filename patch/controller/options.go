package controller

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
)

// ErrOptions is returned for invalid flags.
var ErrOptions = errors.New("invalid flags")

// Where sub-conditions are written: on the operator's own resource, or nowhere.
const (
	StatusOperator = "operator"
	StatusNone     = "none"
)

// Options are the flags of every module.
type Options struct {
	// DryRun only sends dry runs.
	DryRun bool
	// ForceConflicts takes fields from any owner, and keeps their values for the release.
	ForceConflicts bool
	// StatusTarget is StatusOperator or StatusNone.
	StatusTarget string
}

// BindFlags declares the flags. Values that are set are the defaults.
func (o *Options) BindFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.DryRun, "dry-run", o.DryRun, "Send dry runs only: report what would change, and write nothing.")
	flags.BoolVar(&o.ForceConflicts, "force-conflicts", o.ForceConflicts,
		"Take fields that other managers own. Their values are restored on release.")
	flags.StringVar(&o.StatusTarget, "status-target", cmp.Or(o.StatusTarget, StatusOperator), "Where to write sub-conditions: operator or none.")
}

// Validate returns an ErrOptions for invalid flags.
func (o *Options) Validate() error {
	if o.StatusTarget == StatusOperator || o.StatusTarget == StatusNone {
		return nil
	}
	return fmt.Errorf("%w: --status-target=%s; want %s or %s", ErrOptions, o.StatusTarget, StatusOperator, StatusNone)
}
