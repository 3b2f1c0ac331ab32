package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// world is what is true of a cluster from some revision of the API server's etcd on, until the next.
type world struct {
	mode configv1.TopologyMode
	// nodes are those with a role; of the members so many are healthy, less than none where the list cannot be read.
	nodes, members, healthy int
	// moving tells that it is being changed, or that a person does damage: then only who may write is checked.
	moving bool
}

func (w world) size() int {
	if w.healthy < 0 {
		return max(w.nodes, expected(w.mode))
	}
	return max(w.nodes, w.members, expected(w.mode))
}

// need is how many guards must stay, by the rules and not by the code.
func (w world) need() int { return w.size() - mayGo(w.mode, w.size()) }

// needy tells that nothing may be loosened.
func (w world) needy() bool { return w.healthy < expected(w.mode) }

// history is every version of the guard, its budget and the ClusterVersion in the order in which they came, with what was true of
// the cluster at the time. etcd keeps them all, so that nothing is missed, also while the API server is away.
type history struct {
	*cluster
	etcd   *clientv3.Client
	from   int64
	worlds []since
	static *versionOperator
}

type since struct {
	revision int64
	world
}

func (c *cluster) history() *history {
	c.Helper()
	asked, err := clientv3.New(clientv3.Config{Endpoints: []string{c.server.EtcdURL()}, Logger: zap.NewNop()})
	c.must(err)
	c.Cleanup(func() { _ = asked.Close() })
	h := &history{cluster: c, etcd: asked, static: c.versionOperator()}
	h.from = h.revision() + 1
	return h
}

// revision is the last one of etcd, which the resourceVersions of the API server are.
func (h *history) revision() int64 {
	h.Helper()
	answer, err := h.etcd.Get(h.Context(), "health")
	h.must(err)
	return answer.Header.Revision
}

// now says what is true from now on.
func (h *history) now(w world) {
	h.Helper()
	h.worlds = append(h.worlds, since{h.revision(), w})
}

// become changes the cluster, and remembers when.
func (h *history) become(w world) {
	h.Helper()
	moving := w
	moving.moving = true
	h.now(moving)
	h.cluster.etcd.set(w.members, w.healthy)
	h.resize(w.mode, w.nodes)
	h.flip(w.mode)
	h.now(w)
}

func (h *history) at(revision int64) world {
	var w world
	for _, s := range h.worlds {
		if s.revision < revision {
			w = s.world
		}
	}
	return w
}

const (
	deploymentKey = "/registry/deployments/openshift-etcd/etcd-quorum-guard"
	budgetKey     = "/registry/poddisruptionbudgets/openshift-etcd/etcd-quorum-guard"
	versionKey    = "/registry/config.openshift.io/clusterversions/version"
)

// state is what there was at one moment; nil where there was none.
type state struct {
	deployment *appsv1.Deployment
	budget     *policyv1.PodDisruptionBudget
	version    *configv1.ClusterVersion
}

// strength is how many guards stay whatever is evicted.
func (s state) strength() int {
	if s.deployment == nil || s.budget == nil || s.budget.Spec.MaxUnavailable == nil {
		return 0
	}
	return max(int(*s.deployment.Spec.Replicas)-s.budget.Spec.MaxUnavailable.IntValue(), 0)
}

// keptAway tells whether the cluster-version-operator works with a ClusterVersion that keeps it away, or whether there is none.
func (s state) keptAway() bool {
	if s.version == nil {
		return true
	}
	return s.version.Status.ObservedGeneration == s.version.Generation && !slices.ContainsFunc([][2]string{{"Deployment", "apps"}, {"PodDisruptionBudget", "policy"}}, func(kind [2]string) bool {
		return !slices.Contains(s.version.Spec.Overrides, configv1.ComponentOverride{Kind: kind[0], Group: kind[1], Namespace: namespace, Name: guardName, Unmanaged: true})
	})
}

// check goes through the history and reports every moment at which the invariant of docs/etcdguard-handover.md did not hold. It
// returns how many writes of ours it saw.
func (h *history) check() (ours int) {
	h.Helper()
	last := h.revision()
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	defer cancel()
	var now state
	for answer := range h.etcd.Watch(clientv3.WithRequireLeader(ctx), "/registry/", clientv3.WithPrefix(), clientv3.WithRev(h.from), clientv3.WithProgressNotify()) {
		h.must(answer.Err())
		for _, event := range answer.Events {
			if event.Kv.ModRevision > last {
				return ours
			}
			before := now
			key := string(event.Kv.Key)
			switch key {
			case deploymentKey:
				now.deployment = decoded[appsv1.Deployment](h, event)
			case budgetKey:
				now.budget = decoded[policyv1.PodDisruptionBudget](h, event)
			case versionKey:
				now.version = decoded[configv1.ClusterVersion](h, event)
				continue
			default:
				continue
			}
			if h.isOurs(before, now) {
				ours++
				h.judge(event.Kv.ModRevision, before, now)
			}
		}
		if answer.Header.Revision >= last {
			return ours
		}
	}
	h.Fatalf("the history ends too early: %v", ctx.Err())
	return ours
}

func decoded[T any](h *history, event *clientv3.Event) *T {
	h.Helper()
	if event.Type == clientv3.EventTypeDelete {
		return nil
	}
	out := new(T)
	if err := json.Unmarshal(event.Kv.Value, out); err != nil {
		h.Fatalf("%s: %v: %.80q", event.Kv.Key, err, event.Kv.Value)
	}
	return out
}

// isOurs tells whether the change is one of the guard by the controller: it is not the manifest's, and the cluster-version-operator
// deletes nothing.
func (h *history) isOurs(before, now state) bool {
	d, b := now.deployment, now.budget
	switch {
	case (before.deployment == nil) != (d == nil), d != nil && !equality.Semantic.DeepEqual(before.deployment.Spec, d.Spec):
		return d == nil || !equality.Semantic.DeepEqual(d.Spec, h.static.deployment)
	case (before.budget == nil) != (b == nil), b != nil && !equality.Semantic.DeepEqual(before.budget.Spec, b.Spec):
		return b == nil || !equality.Semantic.DeepEqual(b.Spec, h.static.budget)
	}
	return false
}

func (h *history) judge(revision int64, before, now state) {
	h.Helper()
	w := h.at(revision)
	var faults []string
	if !now.keptAway() {
		faults = append(faults, "the cluster-version-operator may write as well")
	}
	deleted := now.deployment == nil && before.deployment != nil || now.budget == nil && before.budget != nil
	switch {
	case w.moving:
	case w.mode == sr:
		if deleted && (w.healthy < 0 || w.members > 1) {
			faults = append(faults, "a guard was deleted while etcd has several members, or nobody knows")
		}
	case deleted:
		faults = append(faults, "a guard was deleted")
	case now.strength() < before.strength() && now.strength() < w.need():
		faults = append(faults, fmt.Sprintf("%d guards stay, after %d, and %d are needed", now.strength(), before.strength(), w.need()))
	case now.strength() < before.strength() && w.needy():
		faults = append(faults, fmt.Sprintf("%d guards stay, after %d, while members are missing", now.strength(), before.strength()))
	}
	if len(faults) > 0 {
		h.Errorf("revision %d, %+v: %s", revision, w, strings.Join(faults, "; "))
	}
}

// rest checks what must be at rest.
func (h *history) rest(w world) error {
	if w.mode == sr {
		return h.hasGuard(0, 0, true)
	}
	n := w.size()
	// What the release brings is right for three members without an arbiter.
	return h.hasGuard(n, mayGo(w.mode, n), n != 3 || w.mode == arbiter)
}
