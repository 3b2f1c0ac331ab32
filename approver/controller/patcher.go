package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/manager"
)

const (
	// maxRounds is more than any way from one state of rest to the next has writes. Beyond it somebody writes against us.
	maxRounds = 8
	// breath is how long is waited then.
	breath = time.Second
)

// patcher carries out decisions.
type patcher struct {
	// live reads from the API server, never from a cache.
	live client.Reader
	// cache is only ever reason to write nothing; it is nil for a single look.
	cache  client.Reader
	mapper meta.RESTMapper
	mode   approver.Mode
	writer writer
	// aging tells of what waits; its result stands beside that of the patch. It is nil for a single look.
	aging *aging
	// watched knows of Machines by watches; it is nil for a single look.
	watched *machineWatch
	// every is how often is looked although nothing changes, while no watch knows of Machines.
	every time.Duration
	now   func() time.Time
	// unserved is when the API server last said that it does not serve a kind of Machines.
	unserved map[schema.GroupKind]time.Time

	topology manager.LastTopology
}

// found is what one round reads: the inputs of the decision, and the objects that it may write, as they are; nil where there is none.
type found struct {
	inputs                                approver.PatchInputs
	operator, version, deployment, config *unstructured.Unstructured
}

// look is what manager.Controller calls: one write after the other, each decided on anew, until there is none. It is never run
// concurrently.
func (p *patcher) look(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
	f, result, err := p.patch(ctx)
	if err != nil {
		return nil, patch.Result{}, err
	}
	if p.aging == nil {
		return f.operator, result, nil
	}
	again, err := p.aging.report(ctx, f.operator, result.State)
	if err != nil {
		return nil, patch.Result{}, err
	}
	result.After = sooner(result.After, again)
	if p.watched.presence() == approver.Unknown {
		result.After = sooner(result.After, p.every)
	}
	return f.operator, result, nil
}

// concerned tells whether this cluster is one whose requests wait for the outside tool. Where the stock approver is left alone, it has
// metrics and alerts of its own.
func concerned(state patch.State) bool {
	switch state {
	case patch.NotNeeded, patch.OptedOut, patch.Waiting:
		return false
	case patch.InForce, patch.WouldChange, patch.Progressing, patch.Blocked, patch.Reverted, patch.Failed:
		return true
	}
	return true
}

// patch reads the API server only where, by what the cache has, there is something to write. A cache that is behind is no reason to: its next event brings
// another look.
func (p *patcher) patch(ctx context.Context) (f found, result patch.Result, err error) {
	if p.cache != nil {
		if f, err = p.gather(ctx, p.cache, p.machinesSeen); err != nil {
			return f, result, err
		}
		if decision := approver.Desired(f.inputs); decision.Action == approver.Nothing {
			return f, said(f, decision), nil
		}
	}
	for round := 1; ; round++ {
		if f, err = p.gather(ctx, p.live, p.machines); err != nil {
			return f, result, err
		}
		decision := approver.Desired(f.inputs)
		if decision.Action == approver.Nothing {
			return f, said(f, decision), nil
		}
		instead, err := p.writer.write(ctx, f, decision)
		switch {
		case ctx.Err() != nil:
			return f, result, ctx.Err()
		case instead != nil:
			return f, *instead, nil
		case err != nil && !stale(err):
			return f, *wordsOf(decision.Action).Failed(approver.Name, err), nil
		case round == maxRounds:
			decision.Result.After = breath
			return f, *decision.Result, nil
		}
		if err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("Write was refused because something has changed; deciding anew",
				"action", string(decision.Action), "cause", err.Error())
		}
	}
}

// said is what there is to say where nothing is to be written.
func said(f found, decision approver.Decision) patch.Result {
	if decision.Result != nil {
		return *decision.Result
	}
	return approver.Observe(f.inputs)
}

// gather reads everything that the decision needs, most of it at the same time. The ClusterVersion comes last: whether the
// cluster-version-operator is kept away must be true when the Deployment is written, and no resourceVersion of that tells.
func (p *patcher) gather(ctx context.Context, from client.Reader, machines func(context.Context) (approver.Presence, error)) (f found, err error) {
	in := &f.inputs
	in.Mode = p.mode
	if err := manager.Beside(ctx,
		func(ctx context.Context) (err error) {
			in.Cluster, err = p.topology.Read(ctx, from)
			return err
		},
		func(ctx context.Context) (err error) {
			in.Machines, err = machines(ctx)
			return err
		},
		func(ctx context.Context) (err error) {
			f.operator, _, err = manager.Read[configv1.ClusterOperator](ctx, from, operatorObject)
			return err
		},
		func(ctx context.Context) (err error) {
			f.config, in.ConfigMap, err = manager.Read[corev1.ConfigMap](ctx, from, configObject)
			return err
		},
		func(ctx context.Context) (err error) {
			f.deployment, in.Deployment, err = manager.Read[appsv1.Deployment](ctx, from, deploymentObject)
			return err
		},
	); err != nil {
		return f, err
	}
	f.version, in.ClusterVersion, err = manager.Read[configv1.ClusterVersion](ctx, from, versionObject)
	return f, err
}

// machineKinds are those by which the stock approver knows Machines.
var machineKinds = []schema.GroupKind{{Group: "machine.openshift.io", Kind: "Machine"}, {Group: "cluster.x-k8s.io", Kind: "Machine"}}

// machinesSeen is whether there is any Machine by the watches, or, while they do not know, by the API server.
func (p *patcher) machinesSeen(ctx context.Context) (approver.Presence, error) {
	if seen := p.watched.presence(); seen != approver.Unknown {
		return seen, nil
	}
	return p.machines(ctx)
}

// machines reads whether there is any Machine. A cluster that does not serve the kind has none, and is asked again no sooner than it is looked at
// anyway: to find out takes the whole list of what is served, for which all that this process wants of the API server has to wait.
func (p *patcher) machines(ctx context.Context) (approver.Presence, error) {
	for _, kind := range machineKinds {
		if version := p.watched.watches(kind); version != "" {
			// The watch knows a kind that is served since a moment sooner than the RESTMapper.
			switch found, _, err := p.watched.any(ctx, kind, version); {
			case err != nil:
				return approver.Unknown, err
			case found:
				return approver.Present, nil
			}
			continue
		}
		if asked, no := p.unserved[kind]; no && p.now().Sub(asked) < p.every {
			continue
		}
		delete(p.unserved, kind)
		asked := p.now()
		mapping, err := p.mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			p.unserved[kind] = asked
			continue
		}
		if err != nil {
			return approver.Unknown, fmt.Errorf("looking for %s: %w", kind, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		switch err := p.live.List(ctx, list, client.Limit(1)); {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // it is not served any more
		case err != nil:
			return approver.Unknown, fmt.Errorf("reading whether there is any %s: %w", kind, err)
		case len(list.Items) > 0:
			return approver.Present, nil
		}
	}
	return approver.Absent, nil
}

func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
