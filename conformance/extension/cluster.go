// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"sync"

	"github.com/spf13/pflag"

	"github.com/solonode/sno/conformance/catalogue"
	"github.com/solonode/sno/conformance/cluster"
	"github.com/solonode/sno/conformance/runner"
)

type clusterFlags struct{ options ClusterOptions }

func (c *clusterFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.Kubeconfig, "kubeconfig", "", "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, the pod's service account")
	flags.StringVar(&c.options.Scenario, "scenario", "", "name of the cluster in the report; default: its infrastructure name")
	flags.StringVar(&c.options.Image, "image", "",
		"image of copies of Deployments, which must keep running; default: one with a shell that OpenShift runs on the nodes, or "+runner.CopyImage)
	flags.StringSliceVar(&c.options.PayloadNamespaces, "payload-namespaces", nil,
		"namespaces whose objects count as OpenShift's own; default: those of the release payload, without add-ons. The run prints those that exist")
}

// bindHooks adds the commands that act on the cluster. OpenShift's test runner does not know them.
func (c *clusterFlags) bindHooks(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.RebootCommand, "reboot-command", "", "shell command that reboots the node of its last argument; proved by the node's boot ID")
	flags.StringVar(&c.options.UpgradeCommand, "upgrade-command", "", "shell command that upgrades the cluster; proved by the history of the ClusterVersion")
}

func (c *clusterFlags) bindOutageHook(flags *pflag.FlagSet) {
	flags.StringVar(&c.options.OutageCommand, "outage-command", "",
		"shell command that stops the API server for $SNO_OUTAGE_SECONDS seconds and starts it; proved by requests without an answer")
}

// connect returns the configured cluster for checks. Stop deletes it if it was created for the run, once; also after an
// error.
func (c *clusterFlags) connect(ctx context.Context, p Program, chosen []catalogue.Check, artifacts string) (target cluster.Target, stop func(), err error) {
	options := c.options
	options.Tiers, options.Artifacts, options.Progress = runner.TiersOf(chosen), artifacts, p.Err
	target, err = p.Provider(ctx, options)
	if target.Times == (cluster.Times{}) {
		target.Times = cluster.RealTimes()
	}
	if target.Stop == nil {
		return target, func() {}, err
	}
	target.Stop = sync.OnceFunc(target.Stop)
	return target, target.Stop, err
}
