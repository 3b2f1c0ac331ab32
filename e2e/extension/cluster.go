package extension

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/solonode/sno/e2e/conformance"
	"github.com/solonode/sno/e2e/report"
)

// clusterFlags choose the cluster.
type clusterFlags struct {
	provider string
	options  ClusterOptions
}

func (c *clusterFlags) bind(p Program, flags *pflag.FlagSet) {
	flags.StringVar(&c.provider, "provider", "existing", "where the cluster comes from: "+strings.Join(p.providers(), ", "))
	flags.StringVar(&c.options.Kubeconfig, "kubeconfig", "", "file that says how to connect; default: $KUBECONFIG, ~/.kube/config, the pod's own account")
	flags.StringVar(&c.options.Scenario, "scenario", "", "name of the cluster in the report, and what to make where the provider makes it")
	flags.StringVar(&c.options.Variant, "variant", "", "what shapes the cluster where the provider makes it: sno, baseline")
	flags.StringVar(&c.options.Image, "image", CopyImage, "what copies of Deployments run; it must be one that keeps running")
}

func (p Program) providers() []string { return slices.Sorted(maps.Keys(p.Providers)) }

// done does checks on the cluster of the flags, and takes the cluster away where the run has made it.
func (c *clusterFlags) done(ctx context.Context, p Program, checks []conformance.Check, artifacts string, each func(finished)) (report.Report, error) {
	provider, ok := p.Providers[c.provider]
	if !ok {
		return report.Report{}, fmt.Errorf("no provider is called %q: there are %s", c.provider, strings.Join(p.providers(), ", "))
	}
	options := c.options
	options.Tiers, options.Artifacts, options.Progress = conformance.TiersOf(checks), artifacts, p.Err
	target, err := provider(ctx, options)
	if target.Stop != nil { // the runner does it too, where there comes to be one
		target.Stop = sync.OnceFunc(target.Stop)
		defer target.Stop()
	}
	if err != nil {
		return report.Report{}, err
	}
	return execution{Program: p, target: target, checks: checks, artifacts: artifacts, each: each}.run(ctx)
}
