package controller

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

// patcher shapes both Deployments, and takes downloads over.
type patcher struct {
	// reader is the cache, live the API server itself.
	reader, live client.Reader
	// There is an applier for each object, because what may be taken from whom differs.
	version, downloads, console *apply.Applier
	// client is what they write with.
	client   client.Client
	topology manager.LastTopology
}

// newPatcher reads from the cache, and from the API server where that is not enough. applier makes an applier that may take those
// fields over.
func newPatcher(cache, live client.Reader, applier func(...apply.Overridable) *apply.Applier) *patcher {
	var fromRelease []apply.Overridable
	for _, field := range console.ShapeFields() {
		fromRelease = append(fromRelease, apply.Overridable{Field: field, Manager: console.ClusterVersionOperator})
	}
	p := &patcher{reader: cache, live: live, version: applier(), downloads: applier(fromRelease...), console: applier()}
	p.client = p.version.Client
	p.version.ForceConflicts = false // a flag that is about Deployments must not reach what the cluster is upgraded by
	return p
}

// objects are those that are written, and the one that carries the conditions, as they were read; nil where there is none.
type objects struct {
	operator, version, downloads, console *unstructured.Unstructured
}

// look is what manager.Controller calls. It is never run concurrently.
func (p *patcher) look(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
	found, inputs, err := p.gather(ctx)
	if err != nil {
		return nil, patch.Result{}, err
	}
	return found.operator, p.patch(ctx, found, inputs), nil
}

// gather reads what the decision needs from the cache.
func (p *patcher) gather(ctx context.Context) (found objects, in console.Inputs, err error) {
	in.ForceConflicts = p.console.ForceConflicts
	if in.Cluster, err = p.topology.Read(ctx, p.reader); err != nil {
		return found, in, err
	}
	if found.operator, in.Operator, err = manager.Read[operatorv1.Console](ctx, p.reader, operatorObject); err != nil {
		return found, in, err
	}
	if found.version, in.ClusterVersion, err = manager.Read[configv1.ClusterVersion](ctx, p.reader, versionObject); err != nil {
		return found, in, err
	}
	if found.console, in.Console, err = manager.Read[appsv1.Deployment](ctx, p.reader, consoleObject); err != nil {
		return found, in, err
	}
	if found.downloads, in.Downloads, err = manager.Read[appsv1.Deployment](ctx, p.reader, downloadsObject); err != nil {
		return found, in, err
	}
	if _, in.ConsoleBudget, err = manager.Read[policyv1.PodDisruptionBudget](ctx, p.reader, consoleBudget); err != nil {
		return found, in, err
	}
	_, in.DownloadsBudget, err = manager.Read[policyv1.PodDisruptionBudget](ctx, p.reader, downloadsBudget)
	return found, in, err
}

// patch brings the decision onto the cluster and says how it went: the worst of what there is to say.
func (p *patcher) patch(ctx context.Context, found objects, in console.Inputs) patch.Result {
	decision := console.Decide(in)
	var said []patch.Result
	if result := p.override(ctx, found, decision); result != nil {
		said = append(said, *result)
		if result.State == patch.WouldChange && decision.ClusterVersion.Intent != nil && decision.Downloads.Intent == nil {
			decision.Downloads.Result = nil // a dry run is not taking anything over
		}
	}
	before := decision.Result()
	p.downloads.Client = relying{p.client, p.live, versionObject, found.version, entry}
	for _, of := range []struct {
		applier *apply.Applier
		words   apply.Words
		live    *unstructured.Unstructured
		step    *console.DeploymentStep
	}{
		{p.downloads, downloadsWords, found.downloads, &decision.Downloads},
		{p.console, consoleWords, found.console, &decision.Console},
	} {
		if result := shape(ctx, of.applier, of.words, of.live, *of.step); result != nil {
			said = append(said, *result)
			of.step.Intent = nil // it does not stand, so there is nothing to observe
		}
	}
	if before != nil {
		said = append(said, *before)
	}
	if decision.Downloads.Intent != nil || decision.Console.Intent != nil {
		said = append(said, console.Observe(in, decision))
	}
	return summary(said)
}

// override carries out the step on the ClusterVersion; nil when there is nothing to say beside the decision.
func (p *patcher) override(ctx context.Context, found objects, decision console.Decision) *patch.Result {
	p.version.Client = relying{p.client, p.live, downloadsObject, found.downloads, hold}
	switch step := decision.ClusterVersion; {
	case step.Intent != nil:
		outcome, err := p.version.Apply(ctx, found.version, step.Intent)
		if err == nil && outcome.Kind == apply.Conflicted {
			result := console.OverrideOwnedByOther(outcome.Conflicts[0].Manager)
			return &result
		}
		return versionWords.Result(ctx, console.Name, outcome, err)
	case step.Release:
		outcome, err := p.version.Release(ctx, found.version, apply.ReleaseOptions{})
		return versionWords.Released(console.Name, *decision.Downloads.Result, outcome, err)
	case found.version != nil:
		// What is not wanted cannot be reverted.
		p.version.Forget(found.version.GetUID())
	}
	return nil
}

// shape carries out the step on one of the Deployments; nil when there is nothing to say beside the decision.
func shape(ctx context.Context, applier *apply.Applier, words apply.Words, live *unstructured.Unstructured, step console.DeploymentStep) *patch.Result {
	switch {
	case live == nil:
	case step.Intent != nil:
		outcome, err := applier.Apply(ctx, live, step.Intent, step.Unset...)
		return words.Result(ctx, console.Name, outcome, err)
	case step.Release:
		outcome, err := applier.Release(ctx, live, apply.ReleaseOptions{})
		return words.Released(console.Name, *step.Result, outcome, err)
	}
	return nil
}

// summary is the worst of the results, with the earliest time at which any of them wants another look.
func summary(said []patch.Result) patch.Result {
	worst := patch.Worst(said...)
	for _, result := range said {
		if result.After > 0 && (worst.After == 0 || result.After < worst.After) {
			worst.After = result.After
		}
		if worst.Err == nil {
			worst.Err = result.Err
		}
	}
	return worst
}
