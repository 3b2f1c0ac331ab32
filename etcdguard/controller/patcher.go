package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
)

const (
	// maxRounds is more than any way from one state of rest to the next has writes. Beyond it somebody writes against us.
	maxRounds = 12
	// breath is how long is waited then.
	breath = time.Second
	// membersPause is how often etcd is asked while a decision waits for its members, which no watch tells of.
	membersPause = 15 * time.Second
)

// Members lists the members of etcd and their health.
type Members interface {
	// Members is the whole list as etcd itself has it. An error means that the members are not known.
	Members(ctx context.Context) ([]etcdguard.Member, error)
}

// patcher carries out decisions.
type patcher struct {
	// live reads from the API server, never from a cache.
	live    client.Reader
	members Members
	image   string
	writer  writer

	topology manager.LastTopology
	// complaint is what was last said about the members, so that it is said once.
	complaint string
}

// found is what one round reads: the inputs of the decision, and the objects that it may write, as they are; nil where there is
// none.
type found struct {
	inputs                            etcdguard.Inputs
	etcd, version, deployment, budget *unstructured.Unstructured
}

// look is what manager.Controller calls: one write after the other, each decided on anew, until there is none. It is never run
// concurrently.
func (p *patcher) look(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
	for round := 1; ; round++ {
		f, err := p.gather(ctx)
		if err != nil {
			return nil, patch.Result{}, err
		}
		decision := etcdguard.Decide(f.inputs)
		if decision.Action == etcdguard.Nothing {
			return f.etcd, p.result(f.inputs, decision), nil
		}
		said, err := p.writer.write(ctx, f, decision)
		switch {
		case ctx.Err() != nil:
			return nil, patch.Result{}, ctx.Err()
		case said == nil && err == nil, errors.Is(err, apply.ErrStale):
			if round < maxRounds {
				continue
			}
			said = &patch.Result{State: patch.Progressing, Reason: etcdguard.ReasonRollingOut, After: breath,
				Message: "The guard is being written, and somebody else writes it as well; the audit log tells who"}
		case err != nil:
			said = p.writer.failed(decision.Action, err)
		}
		decision.Result = said
		return f.etcd, p.result(f.inputs, decision), nil
	}
}

// result is what there is to say about a decision that leaves nothing to write.
func (p *patcher) result(in etcdguard.Inputs, decision etcdguard.Decision) patch.Result {
	var result patch.Result
	if decision.Result != nil {
		result = *decision.Result
	} else {
		result = etcdguard.Observe(in)
	}
	if decision.Deprecation != "" {
		result.Message += ". " + decision.Deprecation
	}
	if in.AsksAgain(result) && (result.After == 0 || result.After > membersPause) {
		result.After = membersPause
	}
	return result
}

// gather reads everything that the decision needs, most of it at the same time. The members come after that, for they may take long, and
// last of all the topology once more and the ClusterVersion: whether the cluster-version-operator is kept away must be true when the write
// is sent, and no resourceVersion of the guard tells.
func (p *patcher) gather(ctx context.Context) (f found, err error) {
	in := &f.inputs
	in.Image, in.ForceConflicts = p.image, p.writer.force
	readTopology := func(ctx context.Context) (err error) {
		in.Cluster, err = p.topology.Read(ctx, p.live)
		return err
	}
	readVersion := func(ctx context.Context) (err error) {
		f.version, in.ClusterVersion, err = manager.Read[configv1.ClusterVersion](ctx, p.live, versionObject)
		return err
	}
	if err := manager.Beside(ctx, readTopology,
		func(ctx context.Context) (err error) {
			f.deployment, in.Deployment, err = manager.Read[appsv1.Deployment](ctx, p.live, deploymentObject)
			return err
		},
		func(ctx context.Context) (err error) {
			f.budget, in.Budget, err = manager.Read[policyv1.PodDisruptionBudget](ctx, p.live, budgetObject)
			return err
		},
		func(ctx context.Context) (err error) {
			_, in.PodsBudget, err = manager.Read[policyv1.PodDisruptionBudget](ctx, p.live, podsBudgetObject)
			return err
		},
		func(ctx context.Context) (err error) {
			f.etcd, in.Etcd, err = manager.Read[operatorv1.Etcd](ctx, p.live, etcdObject)
			return err
		},
		func(ctx context.Context) (err error) {
			in.Nodes, err = memberNodes(ctx, p.live)
			return err
		},
		func(ctx context.Context) (err error) {
			in.ClientSecret, err = presence(ctx, p.live, secretObject)
			return err
		},
		func(ctx context.Context) (err error) {
			in.CABundle, err = presence(ctx, p.live, bundleObject)
			return err
		},
	); err != nil {
		return f, err
	}
	if !in.NeedsMembers() {
		return f, readVersion(ctx)
	}
	in.Members = p.ask(ctx)
	return f, manager.Beside(ctx, readTopology, readVersion)
}

// ask is the list of members; nil when it cannot be read, which the log tells once.
func (p *patcher) ask(ctx context.Context) []etcdguard.Member {
	members, err := p.members.Members(ctx)
	if err == nil {
		p.complaint = ""
		return members
	}
	if text := err.Error(); text != p.complaint && ctx.Err() == nil {
		p.complaint = text
		logr.FromContextOrDiscard(ctx).Info("Members of etcd cannot be read, so the guard is not loosened", "cause", text)
	}
	return nil
}

// memberNodes lists the nodes that may have a member, with nothing but their metadata.
func memberNodes(ctx context.Context, live client.Reader) ([]corev1.Node, error) {
	roles := []manager.Object{masterObjects, arbiterObjects}
	lists := make([]metav1.PartialObjectMetadataList, len(roles))
	var reads []func(context.Context) error
	for i, o := range roles {
		selector, err := labels.Parse(o.Labels)
		if err != nil {
			return nil, fmt.Errorf("selecting nodes: %w", err)
		}
		lists[i].SetGroupVersionKind(o.GroupVersion().WithKind(o.Kind + "List"))
		reads = append(reads, func(ctx context.Context) error {
			if err := live.List(ctx, &lists[i], client.MatchingLabelsSelector{Selector: selector}); err != nil {
				return fmt.Errorf("reading the nodes with %s: %w", o.Labels, err)
			}
			return nil
		})
	}
	if err := manager.Beside(ctx, reads...); err != nil {
		return nil, err
	}
	nodes := []corev1.Node{}
	seen := map[string]bool{}
	for _, list := range lists {
		for _, item := range list.Items {
			if !seen[item.Name] {
				seen[item.Name] = true
				nodes = append(nodes, corev1.Node{ObjectMeta: item.ObjectMeta})
			}
		}
	}
	return nodes, nil
}

// presence reads whether the object is there, and nothing of what is in it.
func presence(ctx context.Context, live client.Reader, o manager.Object) (etcdguard.Presence, error) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(o.GroupVersionKind)
	switch err := live.Get(ctx, o.Key(), metadata); {
	case apierrors.IsNotFound(err):
		return etcdguard.Absent, nil
	case err != nil:
		return etcdguard.Unknown, fmt.Errorf("reading whether there is %s %s: %w", o.Kind, o.Key(), err)
	}
	return etcdguard.Present, nil
}
