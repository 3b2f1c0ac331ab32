package suites

import (
	"context"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
)

// Inputs are what a suite needs from the repository that it runs in.
type Inputs struct {
	// Target connects to the cluster, or makes one. It is asked before the first check that leaves the cluster alone, and again before the first that
	// disturbs it. A cluster whose Target.Stop is set is taken away after each.
	Target func(context.Context) (checks.Target, error)
	// Tiers to run; none means static and scheduled, which leave the cluster as it is.
	Tiers []checks.Tier
	// Modules, where there are any, are the only ones to check.
	Modules []string
	// IDs, where there are any, are the only checks to run.
	IDs []string
	// Artifacts is the folder for what is collected when a check fails; empty for none.
	Artifacts string
	// NewRunner makes what does the checks; nil for checks.NewRunner.
	NewRunner func(context.Context, checks.Target, checks.Selection) (Runner, error)
}

// Runner does checks. It is what a suite uses of checks.Runner.
type Runner interface {
	Start(ctx context.Context) error
	Result(ctx context.Context, id string) (report.Result, error)
	Collect(ctx context.Context, folder string) error
	Close(ctx context.Context) error
}

// newRunner returns no nil pointer in an interface.
func newRunner(ctx context.Context, target checks.Target, selection checks.Selection) (Runner, error) {
	runner, err := checks.NewRunner(ctx, target, selection)
	if err != nil {
		return nil, err
	}
	return runner, nil
}
