// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"context"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

// Inputs configure a suite.
type Inputs struct {
	// Target connects to the cluster or creates one. It is called before the first static or scheduled check, and
	// again before the first disruptive one. A cluster with Target.Stop is deleted after each.
	Target func(context.Context) (cluster.Target, error)
	// Tiers to run; empty for static and scheduled, which do not change the cluster's own objects.
	Tiers []catalogue.Tier
	// Modules and IDs restrict the checks; empty for no restriction.
	Modules []string
	IDs     []string
	// Artifacts is the folder for artifacts of failed checks; empty for none.
	Artifacts string
	// NewRunner is nil for runner.New.
	NewRunner func(context.Context, cluster.Target, runner.Selection) (Runner, error)
}

// Runner contains the used methods of runner.Runner.
type Runner interface {
	Start(ctx context.Context) error
	Result(ctx context.Context, id string) (report.Result, error)
	Collect(ctx context.Context, folder string) error
	Close(ctx context.Context) error
}

// newRunner returns a nil interface with an error, not a nil pointer.
func newRunner(ctx context.Context, target cluster.Target, selection runner.Selection) (Runner, error) {
	run, err := runner.New(ctx, target, selection)
	if err != nil {
		return nil, err
	}
	return run, nil
}
