package extension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
)

// Exit codes of the program.
const (
	exitFailed      = 1   // a check failed, or two reports differ for the worse
	exitBadInput    = 2   // the question cannot be answered as it was asked
	exitInterrupted = 130 // as shells have it
)

// errFailed is returned when the answer is out already and is not a good one.
var errFailed = errors.New("failed")

// Program is sno-tests with what it needs from outside. Catalogue, Connect and Now are for tests; empty they are the real ones.
type Program struct {
	In       io.Reader
	Out, Err io.Writer
	// Colour says that Err is a terminal that shows colours.
	Colour bool
	// Provider finds the cluster.
	Provider Provider
	// Build is what the program was built from.
	Build Build

	Catalogue []checks.Check
	Connect   func(context.Context, checks.Target, checks.Selection) (Runner, error)
	Now       func() time.Time
}

// Provider finds the cluster that checks are run on.
type Provider func(context.Context, ClusterOptions) (checks.Target, error)

// ClusterOptions say which cluster a person wants, and what for.
type ClusterOptions struct {
	// Kubeconfig is a file; empty for where such files usually are.
	Kubeconfig string
	// Scenario names the cluster in reports; empty for the name that the cluster has given itself.
	Scenario string
	// Image is for copies of Deployments; empty for the provider's choice.
	Image string
	// PayloadNamespaces are those of OpenShift's own objects; none means checks.PayloadNamespaces.
	PayloadNamespaces []string
	// Tiers of the checks that will run.
	Tiers []checks.Tier
	// Artifacts is where what the cluster leaves behind belongs; empty for nowhere.
	Artifacts string
	Progress  io.Writer
}

// Runner does checks. It is what the program uses of checks.Runner.
type Runner interface {
	Start(ctx context.Context) error
	Result(ctx context.Context, id string) (report.Result, error)
	Report() report.Report
	Collect(ctx context.Context, folder string) error
	Close(ctx context.Context) error
}

// connect returns no nil pointer in an interface.
func connect(ctx context.Context, target checks.Target, chosen checks.Selection) (Runner, error) {
	runner, err := checks.NewRunner(ctx, target, chosen)
	if err != nil {
		return nil, err
	}
	return runner, nil
}

// Main runs the program and returns its exit code. It says itself what is wrong.
func (p Program) Main(ctx context.Context, args []string) int {
	if p.Catalogue == nil {
		p.Catalogue = checks.Catalogue()
	}
	if p.Connect == nil {
		p.Connect = connect
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	if err := checks.Validate(p.Catalogue); err != nil {
		fmt.Fprintln(p.Err, "sno-tests: the catalogue is wrong:", err)
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
		if !errors.Is(errFailed, err) { // there is more to say than that
			fmt.Fprintln(p.Err, "sno-tests:", err)
		}
		return exitFailed
	default:
		fmt.Fprintln(p.Err, "sno-tests:", err)
		return exitBadInput
	}
}

// choose is checks.Select for the program's catalogue.
func (p Program) choose(chosen checks.Selection) ([]checks.Check, error) {
	return checks.Select(p.Catalogue, chosen)
}
