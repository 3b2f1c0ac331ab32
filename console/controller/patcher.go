// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/console/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/patch/overrides"
	"github.com/solonode/sno/topology"
)

var versionMessages = apply.Messages{
	Subject:           "The ClusterVersion",
	Creator:           "the cluster-version-operator",
	Resource:          "clusterversions.config.openshift.io",
	WouldApply:        "an override for downloads would be added to the ClusterVersion",
	ProgressingReason: decision.ReasonTakingOver,
	OwnedByOther:      decision.OverrideOwnedByOther,
}

func deploymentMessages(name string) apply.Messages {
	return apply.Messages{
		Subject:    "The " + name + " Deployment",
		Creator:    "its operator",
		Resource:   "deployments.apps in namespace " + console.Namespace,
		WouldApply: "the " + name + " Deployment would run one replica that can roll on one node",
	}
}

// patcher has an applier for each object, because the managers whose fields they may take differ.
type patcher struct {
	live                        client.Reader // not a cache
	version, downloads, console *apply.Applier
	force                       bool
}

func newPatcher(env controller.Environment) *patcher {
	var fromRelease []apply.Overridable
	for _, field := range operand.Fields() {
		fromRelease = append(fromRelease, apply.Overridable{Field: field, Manager: overrides.ClusterVersionOperator})
	}
	p := &patcher{
		live: env.Live, force: env.Options.ForceConflicts,
		version: env.Applier(console.Name), downloads: env.Applier(console.Name, fromRelease...), console: env.Applier(console.Name),
	}
	p.version.ForceConflicts = false // the entry blocks upgrades of the whole cluster
	return p
}

type gathered struct {
	inputs                                decision.Inputs
	operator, version, downloads, console *unstructured.Unstructured
}

// reconcile executes the first step that writes. The next step is decided after another read.
func (p *patcher) reconcile(ctx context.Context, cluster *topology.Cluster) (*unstructured.Unstructured, patch.Result, error) {
	g, err := p.gather(ctx, cluster)
	if err != nil {
		return nil, patch.Result{}, err
	}
	decided := decision.Decide(g.inputs)
	if step := decided.ClusterVersion; g.version != nil && step.Intent == nil && !step.Release {
		p.version.Forget(g.version.GetUID()) // removing an override that is not wanted is no revert
	}
	wrote, releasing := false, false
	take := func(applier *apply.Applier, live *unstructured.Unstructured, step patch.Step, messages apply.Messages) *patch.Result {
		result := step.Result
		if !wrote {
			result, wrote = applier.ApplyStep(ctx, live, step, messages)
			releasing = wrote && step.Release
		}
		return result
	}
	result := patch.Combine(
		take(p.version, g.version, decided.ClusterVersion, versionMessages),
		take(p.downloads, g.downloads, decided.Downloads, deploymentMessages(console.DownloadsName)),
		take(p.console, g.console, decided.Console, deploymentMessages(console.ConsoleName)),
	)
	if releasing && result.OK() { // OptedOut means that everything is released
		result = patch.Result{State: patch.Progressing, Reason: decision.ReasonGivingBack, Message: "The patch is being released"}
	}
	if wrote {
		result.After = controller.RequeueDelay
	}
	return g.operator, result, nil
}

// gather reads the ClusterVersion last, because the override must be in force when downloads is written.
func (p *patcher) gather(ctx context.Context, cluster *topology.Cluster) (g gathered, err error) {
	in := &g.inputs
	in.Cluster, in.ForceConflicts = cluster, p.force
	group, reading := errgroup.WithContext(ctx)
	group.Go(controller.ReadInto(reading, p.live, operatorObject, &g.operator, &in.Operator))
	group.Go(controller.ReadInto(reading, p.live, consoleObject, &g.console, &in.Console))
	group.Go(controller.ReadInto(reading, p.live, downloadsObject, &g.downloads, &in.Downloads))
	group.Go(controller.ReadInto(reading, p.live, consoleBudget, nil, &in.ConsoleBudget))
	group.Go(controller.ReadInto(reading, p.live, downloadsBudget, nil, &in.DownloadsBudget))
	if err := group.Wait(); err != nil {
		return g, err
	}
	g.version, in.ClusterVersion, err = controller.Read[configv1.ClusterVersion](ctx, p.live, versionObject)
	return g, err
}
