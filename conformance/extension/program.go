// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/report"
	"github.com/solonode/sno/conformance/runner"
)

const (
	exitFailed      = 1   // a check failed, or a report is worse than another one
	exitBadInput    = 2   // invalid arguments or input
	exitInterrupted = 130 // as shells do
)

// errFailed is returned after a complete output with failures.
var errFailed = errors.New("failed")

// Program is sno-tests with its dependencies. Catalogue, Connect and Now are set by tests only.
type Program struct {
	In       io.Reader
	Out, Err io.Writer
	// Colour is set if Err is a terminal with colours.
	Colour   bool
	Provider Provider
	Build    Build

	Catalogue []catalogue.Check
	Connect   func(context.Context, cluster.Target, runner.Selection) (Runner, error)
	Now       func() time.Time
	// Further are commands that are not of the suite.
	Further []*cobra.Command
}

// Provider returns the cluster on which checks run.
type Provider func(context.Context, ClusterOptions) (cluster.Target, error)

// ClusterOptions choose and describe the cluster.
type ClusterOptions struct {
	// Kubeconfig is a file; empty for the usual locations.
	Kubeconfig string
	// Scenario is the cluster's name in reports; empty for its infrastructure name.
	Scenario string
	// Image is that of copies; empty for the provider's choice.
	Image string
	// PayloadNamespaces are those of OpenShift's own objects; empty for cluster.PayloadNamespaces.
	PayloadNamespaces []string
	Tiers             []catalogue.Tier
	// RebootCommand, OutageCommand and UpgradeCommand perform acts that the API does not allow; see package existing.
	RebootCommand, OutageCommand, UpgradeCommand string
	// Route is set for a recovery: requests are sent through it while the router is deleted.
	Route *types.NamespacedName
	// Artifacts is a folder for logs of the cluster; empty for none.
	Artifacts string
	Progress  io.Writer
}

// Runner contains the used methods of runner.Runner.
type Runner interface {
	Start(ctx context.Context) error
	Result(ctx context.Context, id string) (report.Result, error)
	Report() report.Report
	Collect(ctx context.Context, folder string) error
	Close(ctx context.Context) error
}

// connect returns a nil interface with an error, not a nil pointer.
func connect(ctx context.Context, target cluster.Target, chosen runner.Selection) (Runner, error) {
	run, err := runner.New(ctx, target, chosen)
	if err != nil {
		return nil, err
	}
	return run, nil
}

// Main runs the program, prints errors, and returns the exit code.
func (p Program) Main(ctx context.Context, args []string) int {
	if p.Catalogue == nil {
		p.Catalogue = catalogue.All()
	}
	if p.Connect == nil {
		p.Connect = connect
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if err := catalogue.Validate(p.Catalogue); err != nil {
		fmt.Fprintln(p.Err, "sno-tests: the catalogue is invalid:", err)
		return exitBadInput
	}
	err := p.command(args).ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(p.Err, "Interrupted")
		return exitInterrupted
	case errors.Is(err, errFailed), errors.Is(err, errNotCleanedUp):
		if !errors.Is(errFailed, err) { // errFailed alone has no further message
			fmt.Fprintln(p.Err, "sno-tests:", err)
		}
		return exitFailed
	default:
		fmt.Fprintln(p.Err, "sno-tests:", err)
		return exitBadInput
	}
}

func (p Program) choose(chosen runner.Selection) ([]catalogue.Check, error) {
	return runner.Select(p.Catalogue, chosen)
}
