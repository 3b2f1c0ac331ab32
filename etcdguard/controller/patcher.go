package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/topology"
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
	// live reads from the API server, never from a cache. What the cache says is only a hint.
	live, cache client.Reader
	members     Members
	image       string
	writer      writer

	topology manager.LastTopology
	// last is what the round before decided on.
	last etcdguard.Inputs
	// claimed is what the look before found, when all that it left to wait for was the cluster-version-operator's answer to a claim, and believed is until
	// when the cache is, that there is none.
	claimed  *found
	believed time.Time
	// complaint is what was last said about the members, so that it is said once.
	complaint string
}

// found is what one round reads: the inputs of the decision, and the objects that it may write, as they are; nil where there is
// none.
type found struct {
	inputs etcdguard.Inputs
	// roles are those of the nodes in the inputs.
	roles                             []string
	etcd, version, deployment, budget *unstructured.Unstructured
	// confirmed tells that the ClusterVersion was read after the guard.
	confirmed bool
}

// look is what manager.Controller calls: one write after the other, each decided on anew, until there is none. It is never run
// concurrently.
func (p *patcher) look(ctx context.Context) (*unstructured.Unstructured, patch.Result, error) {
	if result := p.awaitsAnswer(ctx); result != nil {
		return p.claimed.etcd, *result, nil
	}
	f, err := p.begin(ctx)
	for round := 1; ; round++ {
		if err != nil {
			return nil, patch.Result{}, err
		}
		decision := etcdguard.Decide(f.inputs)
		for ofGuard(decision.Action) && !f.confirmed {
			if f, err = p.confirm(ctx, f); err != nil {
				return nil, patch.Result{}, err
			}
			decision = etcdguard.Decide(f.inputs)
		}
		if decision.Action == etcdguard.Nothing {
			if f.withoutGuard() && awaits(decision) {
				p.claimed, p.believed = &f, time.Now().Add(breath)
			}
			return f.etcd, p.result(f.inputs, decision), nil
		}
		said, failure := p.writer.write(ctx, f, decision)
		again := errors.Is(failure, apply.ErrStale) || (said == nil && failure == nil)
		switch {
		case ctx.Err() != nil:
			return nil, patch.Result{}, ctx.Err()
		case again && round < maxRounds && decision.Action == etcdguard.Claim && f.withoutGuard() && failure != nil:
			// Other modules write the ClusterVersion at the same moment, and what they write there says nothing about the guard. Where there is to
			// be none, nothing else can have made the claim wrong.
			f, err = p.confirm(ctx, f)
			continue
		case again && round < maxRounds && decision.Action == etcdguard.Claim && f.withoutGuard():
			// By the time that all else is read the cluster-version-operator has mostly answered.
			f, err = p.recheck(ctx, f)
			continue
		case again && round < maxRounds && failure == nil && decision.Action == etcdguard.DeleteBudget && f.deletesDeployment():
			f.budget, f.inputs.Budget = nil, nil
			continue
		case again && round < maxRounds:
			f, err = p.gather(ctx)
			continue
		case again:
			said = &patch.Result{State: patch.Progressing, Reason: etcdguard.ReasonRollingOut, After: breath,
				Message: "The guard is being written, and somebody else writes it as well; the audit log tells who"}
		case failure != nil:
			said = p.writer.failed(decision.Action, failure)
		}
		decision.Result = said
		return f.etcd, p.result(f.inputs, decision), nil
	}
}

// ofGuard tells whether an action writes the guard, and not only who writes it.
func ofGuard(action etcdguard.Action) bool {
	return action != etcdguard.Nothing && action != etcdguard.Claim && action != etcdguard.Unclaim
}

// deletesDeployment tells whether the Deployment goes with the budget: what has just been confirmed for one of them was confirmed for both, and each write is
// bound to what was read of its object.
func (f found) deletesDeployment() bool {
	f.inputs.Budget = nil
	return etcdguard.Decide(f.inputs).Action == etcdguard.DeleteDeployment
}

// awaitsAnswer is what there is to say while the answer to a claim is all that is waited for, by what the cache has, too; nil when it is time to read. The
// event of the answer brings the next look. Should the cache be behind, or something else have changed, another look comes soon.
func (p *patcher) awaitsAnswer(ctx context.Context) *patch.Result {
	left := time.Until(p.believed)
	if p.claimed == nil || left <= 0 {
		return nil
	}
	in := p.claimed.inputs
	in.Cluster = p.cachedTopology(ctx, in.Cluster)
	var err error
	if _, in.ClusterVersion, err = manager.Read[configv1.ClusterVersion](ctx, p.cache, versionObject); err != nil {
		return nil
	}
	decision := etcdguard.Decide(in)
	if !awaits(decision) {
		return nil
	}
	result := p.result(in, decision)
	result.After = left
	return &result
}

// awaits tells that a decision waits for the cluster-version-operator.
func awaits(decision etcdguard.Decision) bool {
	return decision.Action == etcdguard.Nothing && decision.Result != nil && decision.Result.Reason == etcdguard.ReasonTakingOver
}

// withoutGuard tells whether there is to be no guard: then no node counts.
func (f found) withoutGuard() bool { return len(f.inputs.NodeRoles()) == 0 }

// begin reads what the first decision needs. Where a guard is to go and the look before left with a claim, the cluster-version-operator's answer to it is
// all that is waited for.
func (p *patcher) begin(ctx context.Context) (found, error) {
	claimed := p.claimed
	p.claimed = nil
	if claimed == nil {
		return p.gather(ctx)
	}
	f, err := p.recheck(ctx, *claimed)
	if err == nil && !ofGuard(etcdguard.Decide(f.inputs).Action) {
		return p.gather(ctx)
	}
	return f, err
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

// gather reads everything that the decision needs at the same time.
//
// The nodes and the members take longest, and not every decision needs them: a list waits until the API server's own cache is as new as
// etcd, up to a tenth of a second. Where there is to be no guard no certificate counts either. They are read beside the rest where the decision is expected
// to need them, and after it where it does and was not.
func (p *patcher) gather(ctx context.Context) (f found, err error) {
	in := &f.inputs
	in.Image, in.ForceConflicts = p.image, p.writer.force
	readNodes := func(ctx context.Context) (err error) {
		in.Nodes, err = memberNodes(ctx, p.live, f.roles)
		return err
	}
	readSecret := func(ctx context.Context) (err error) {
		in.ClientSecret, err = presence(ctx, p.live, secretObject)
		return err
	}
	readBundle := func(ctx context.Context) (err error) {
		in.CABundle, err = presence(ctx, p.live, bundleObject)
		return err
	}
	readMembers := func(ctx context.Context) error {
		in.Members = p.ask(ctx)
		return nil
	}
	reads := []func(context.Context) error{
		func(ctx context.Context) error { return p.readTopology(ctx, in) },
		func(ctx context.Context) error { return p.readVersion(ctx, &f) },
		func(ctx context.Context) error { return p.readEtcd(ctx, &f) },
		func(ctx context.Context) error { return p.readPodsBudget(ctx, in) },
		func(ctx context.Context) (err error) {
			f.deployment, in.Deployment, err = manager.Read[appsv1.Deployment](ctx, p.live, deploymentObject)
			return err
		},
		func(ctx context.Context) (err error) {
			f.budget, in.Budget, err = manager.Read[policyv1.PodDisruptionBudget](ctx, p.live, budgetObject)
			return err
		},
	}
	expected := p.expected(ctx)
	members := expected.NeedsMembers()
	if f.roles = expected.NodeRoles(); len(f.roles) > 0 {
		reads = append(reads, readNodes, readSecret, readBundle)
	}
	if members {
		reads = append(reads, readMembers)
	}
	if err := manager.Beside(ctx, reads...); err != nil {
		return f, err
	}
	reads = nil
	if f.lacksNodes() {
		if len(f.roles) == 0 {
			reads = append(reads, readSecret, readBundle)
		}
		f.roles = in.NodeRoles()
		reads = append(reads, readNodes)
	}
	if in.NeedsMembers() && !members {
		reads = append(reads, readMembers)
	}
	if err := manager.Beside(ctx, reads...); err != nil {
		return f, err
	}
	p.last = f.inputs
	return f, nil
}

// confirm reads last of all, when the guard is to be written, the topology once more and the ClusterVersion: whether the cluster-version-operator is kept
// away must be true when the write is sent, and what was read of the guard before does not tell. A write of its own that comes later is not lost: ours,
// which is bound to what was read, is refused for it.
func (p *patcher) confirm(ctx context.Context, f found) (found, error) {
	reads := []func(context.Context) error{func(ctx context.Context) error { return p.readVersion(ctx, &f) }}
	if f.inputs.NeedsMembers() {
		reads = append(reads, func(ctx context.Context) error { return p.readTopology(ctx, &f.inputs) })
	}
	if err := manager.Beside(ctx, reads...); err != nil {
		return f, err
	}
	if f.lacksNodes() {
		return p.gather(ctx) // the topology changed while it was read
	}
	f.confirmed = true
	p.last = f.inputs
	return f, nil
}

// recheck reads again, where there is to be no guard, all that counts but the guard itself. The next write is bound to what was read of that.
func (p *patcher) recheck(ctx context.Context, f found) (found, error) {
	if err := manager.Beside(ctx,
		func(ctx context.Context) error { return p.readEtcd(ctx, &f) },
		func(ctx context.Context) error { return p.readPodsBudget(ctx, &f.inputs) },
		func(ctx context.Context) error {
			f.inputs.Members = p.ask(ctx)
			return nil
		},
	); err != nil {
		return f, err
	}
	return p.confirm(ctx, f)
}

// lacksNodes tells that the decision needs nodes that were not read.
func (f found) lacksNodes() bool {
	return slices.ContainsFunc(f.inputs.NodeRoles(), func(role string) bool { return !slices.Contains(f.roles, role) })
}

func (p *patcher) readTopology(ctx context.Context, in *etcdguard.Inputs) (err error) {
	in.Cluster, err = p.topology.Read(ctx, p.live)
	return err
}

func (p *patcher) readVersion(ctx context.Context, f *found) (err error) {
	f.version, f.inputs.ClusterVersion, err = manager.Read[configv1.ClusterVersion](ctx, p.live, versionObject)
	return err
}

func (p *patcher) readEtcd(ctx context.Context, f *found) (err error) {
	f.etcd, f.inputs.Etcd, err = manager.Read[operatorv1.Etcd](ctx, p.live, etcdObject)
	return err
}

func (p *patcher) readPodsBudget(ctx context.Context, in *etcdguard.Inputs) (err error) {
	_, in.PodsBudget, err = manager.Read[policyv1.PodDisruptionBudget](ctx, p.live, podsBudgetObject)
	return err
}

// expected is what this round is likely to find: what the last one did, in the topology that the cache has. Before the first nothing is.
func (p *patcher) expected(ctx context.Context) etcdguard.Inputs {
	expected := p.last
	if expected.Cluster != nil {
		expected.Cluster = p.cachedTopology(ctx, expected.Cluster)
	}
	return expected
}

// cachedTopology is what the cache has, or else what is known.
func (p *patcher) cachedTopology(ctx context.Context, known *topology.Cluster) *topology.Cluster {
	cached := manager.Infrastructure.Unstructured()
	if p.cache.Get(ctx, manager.Infrastructure.Key(), cached) != nil {
		return known
	}
	if cluster, err := topology.FromUnstructured(cached); err == nil {
		return &cluster
	}
	return known
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

// memberNodes lists the nodes with those roles, which may have a member, with nothing but their metadata.
func memberNodes(ctx context.Context, live client.Reader, roles []string) ([]corev1.Node, error) {
	lists := make([]metav1.PartialObjectMetadataList, len(roles))
	var reads []func(context.Context) error
	for i, role := range roles {
		lists[i].SetGroupVersionKind(nodeKind.GroupVersion().WithKind(nodeKind.Kind + "List"))
		reads = append(reads, func(ctx context.Context) error {
			if err := live.List(ctx, &lists[i], client.HasLabels{role}); err != nil {
				return fmt.Errorf("reading the nodes with %s: %w", role, err)
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
