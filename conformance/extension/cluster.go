package extension

import (
	"context"
	"sync"

	"github.com/spf13/pflag"

	"github.com/solonode/sno/conformance/checks"
	"github.com/solonode/sno/conformance/report"
)

// clusterFlags choose the cluster.
type clusterFlags struct{ options ClusterOptions }

func (c *clusterFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.Kubeconfig, "kubeconfig", "", "file that says how to connect; default: $KUBECONFIG, ~/.kube/config, the pod's own account")
	flags.StringVar(&c.options.Scenario, "scenario", "", "name of the cluster in the report; default: the name that the cluster has given itself")
	flags.StringVar(&c.options.Image, "image", "",
		"what copies of Deployments run, and keeps running; default: one that the nodes have, because a pod of OpenShift runs a shell of it, or "+checks.CopyImage)
	flags.StringSliceVar(&c.options.PayloadNamespaces, "payload-namespaces", nil,
		"namespaces whose objects count as OpenShift's own; default: those of a release's payload, without add-ons. The run prints which of them are there")
}

// done does checks on the cluster of the flags, and takes the cluster away where the run has made it.
func (c *clusterFlags) runChecks(ctx context.Context, p Program, chosen []checks.Check, artifacts string, each func(finished)) (report.Report, error) {
	options := c.options
	options.Tiers, options.Artifacts, options.Progress = checks.TiersOf(chosen), artifacts, p.Err
	target, err := p.Provider(ctx, options)
	if target.Stop != nil { // the runner does it too, where there comes to be one
		target.Stop = sync.OnceFunc(target.Stop)
		defer target.Stop()
	}
	if err != nil {
		return report.Report{}, err
	}
	return execution{Program: p, target: target, checks: chosen, artifacts: artifacts, each: each}.run(ctx)
}
