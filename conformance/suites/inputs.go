// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"context"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
)

// Inputs configure a suite.
type Inputs struct {
	// Target connects to the cluster or creates one. It is called before the first static or scheduled check, and
	// again before the first disruptive one. A cluster with Target.Stop is deleted after each.
	Target func(context.Context) (checks.Target, error)
	// Tiers to run; empty for static and scheduled, which do not change the cluster's own objects.
	Tiers []checks.Tier
	// Modules and IDs restrict the checks; empty for no restriction.
	Modules []string
	IDs     []string
	// Artifacts is the folder for artifacts of failed checks; empty for none.
	Artifacts string
	// NewRunner is nil for checks.NewRunner.
	NewRunner func(context.Context, checks.Target, checks.Selection) (Runner, error)
}

// Runner contains the used methods of checks.Runner.
type Runner interface {
	Start(ctx context.Context) error
	Result(ctx context.Context, id string) (report.Result, error)
	Collect(ctx context.Context, folder string) error
	Close(ctx context.Context) error
}

// newRunner returns a nil interface with an error, not a nil pointer.
func newRunner(ctx context.Context, target checks.Target, selection checks.Selection) (Runner, error) {
	runner, err := checks.NewRunner(ctx, target, selection)
	if err != nil {
		return nil, err
	}
	return runner, nil
}
