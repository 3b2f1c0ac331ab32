// SPDX-License-Identifier: Apache-2.0

package etcdguard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

// TestFollowsTheCluster shows R-SNO-7 and R-SNO-4 with the permissions of config/rbac.
func TestFollowsTheCluster(t *testing.T) {
	c := install(t, ha, 3)
	defer c.cvo.RunInBackground()()
	p := c.start()
	inForce := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		c.Eventually(reason, func() error {
			c.CompleteRollouts(deploymentObject)
			return c.HasCondition(etcdObject, "EtcdGuardTopologyPatchInForce", status, reason)()
		})
	}
	inForce(metav1.ConditionFalse, "NotNeeded")
	p.CheckNoWrites(2)

	c.Delete(secretObject)
	c.change(ha, 5)
	inForce(metav1.ConditionFalse, "CertificateMissing")
	c.wantGuard(3, 1, false)
	c.installCertificates()
	for _, stage := range []struct {
		mode                      configv1.TopologyMode
		n, guards, maxUnavailable int
	}{{ha, 5, 5, 2}, {sr, 1, 0, 0}, {arbiter, 3, 3, 1}} {
		c.change(stage.mode, stage.n)
		c.Eventually("the guard is correct", func() error { return c.checkGuard(stage.guards, stage.maxUnavailable, true) })
		inForce(metav1.ConditionTrue, "AsExpected")
		p.CheckNoWrites(3)
	}
	c.Delete(deploymentObject)
	c.Eventually("the guard is recreated", func() error { return c.checkGuard(3, 1, true) })

	events := c.Events(metav1.NamespaceDefault)
	if events["Warning CertificateMissing"]+events["Normal CertificateMissing"] == 0 || events["Normal AsExpected"] == 0 {
		t.Errorf("events: %v", events)
	}
	if n, err := p.Metric("sno_apply_total", `module="etcdguard"`, `result="applied"`); err != nil || n == 0 {
		t.Errorf("%v writes counted, %v", n, err)
	}
	p.Stop()
}

// Plain Kubernetes serves neither ClusterVersion nor Etcd.
func TestWithoutOpenShift(t *testing.T) {
	long(t)
	t.Parallel()
	c := newCluster(suite.ClusterOn(t, apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}})))
	c.installCertificates()
	c.change(ha, 5)
	p := c.start()
	p.WaitForLog("Working without kinds that the cluster does not serve")
	c.Eventually("there is a guard", func() error {
		d := modules.Find[appsv1.Deployment](c.Cluster, deploymentObject)
		if d == nil || *d.Spec.Replicas != 5 {
			return errors.New("the Deployment is missing or wrong")
		}
		c.CompleteRollouts(deploymentObject)
		return p.HasMetric(1, "sno_patch_in_force")()
	})
	if got := c.budget().Spec.MaxUnavailable.IntValue(); got != 2 {
		t.Errorf("maxUnavailable %d", got)
	}
	p.Stop()
}

// long skips a test of real processes with -short.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow; make proof runs it")
	}
}

// testInterruptions changes the cluster, and calls kill at random moments while the cluster-version-operator runs.
func (c *cluster) testInterruptions(randomSeed uint64, states []clusterState, kill func()) {
	c.Helper()
	random := rand.New(rand.NewPCG(randomSeed, 0))
	h := c.history()
	defer c.cvo.RunInBackground()()
	for _, w := range states {
		h.change(w)
		until := h.revision() + random.Int64N(5)
		c.Eventually("something is written", func() error {
			if now := h.revision(); now < until {
				return fmt.Errorf("revision %d, want %d", now, until)
			}
			return nil
		})
		kill()
		c.Eventually("the guard is correct", func() error { return h.checkSettled(w) })
	}
	if ours := h.check(); ours < 6 {
		c.Errorf("only %d writes of the controller", ours)
	}
}

func TestProcessKilled(t *testing.T) {
	long(t)
	c := install(t, ha, 3)
	p := c.start()
	c.testInterruptions(1, []clusterState{
		healthyState(ha, 5), healthyState(sr, 1), healthyState(dual, 2), healthyState(arbiter, 3), healthyState(ha, 3), healthyState(ha, 5),
	}, func() { p.Kill(); p = c.start() })
	p.Stop()
}

func TestAPIServerKilled(t *testing.T) {
	long(t)
	t.Parallel()
	c := newCluster(suite.ClusterOn(t, apiserver.Start(t, options)))
	c.install(ha, 3)
	p := c.start()
	c.testInterruptions(2, []clusterState{healthyState(ha, 5), healthyState(sr, 1), healthyState(arbiter, 3)}, func() {
		c.Server.Restart(t)
		c.Eventually("the API server is back", func() error {
			_, err := c.Admin.RESTMapper().ResourceFor(deploymentObject.GroupVersion().WithResource("deployments"))
			return errors.Join(err, c.Admin.Get(c.Context(), controller.Infrastructure.Key(), controller.Infrastructure.Unstructured()))
		})
	})
	p.Stop()
}

// TestTwoWithoutElection runs two controllers, of which resourceVersions order the writes.
func TestTwoWithoutElection(t *testing.T) {
	c := install(t, ha, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	for range 2 {
		l := c.reconciler()
		both.Go(func() {
			for ctx.Err() == nil {
				_, _ = l.Try() // the other one may have changed the objects
			}
		})
	}
	c.testInterruptions(3, []clusterState{healthyState(ha, 5), healthyState(arbiter, 3), healthyState(sr, 1), healthyState(ha, 3)}, func() {})
	cancel()
	both.Wait()
}

func TestFlags(t *testing.T) {
	t.Parallel()
	suite.TestFlags(t, map[string]modules.Invocation{
		"own flags":   {Args: []string{"--help"}, Output: []string{"-etcd-endpoints", "-image"}},
		"no endpoint": {Args: []string{"--etcd-endpoints=ftp://x:1"}, Code: 2, Output: []string{"--etcd-endpoints"}},
	})
}

// TestFollowsTheCluster shows that the permissions suffice.
func TestManifests(t *testing.T) {
	suite.TestManifests(t, [][6]string{{namespace, "apps", "deployments", "", guardName, "patch"}}, [][6]string{
		{namespace, "apps", "deployments", "", guardName, "update"},
		{namespace, "apps", "deployments", "", "other", "patch"},
		{namespace, "apps", "deployments", "", "other", "delete"},
		{namespace, "apps", "deployments", "", "", "create"},
		{namespace, "policy", "poddisruptionbudgets", "", "etcd-guard-pdb", "patch"},
		{namespace, "policy", "poddisruptionbudgets", "", "etcd-guard-pdb", "delete"},
		{namespace, "", "secrets", "", "", "list"},
		{namespace, "", "secrets", "", "other", "get"},
		{namespace, "", "configmaps", "", "other", "get"},
		{namespace, "", "pods", "", "", "list"},
		{"openshift-etcd-operator", "apps", "deployments", "", "etcd-operator", "get"},
		{"", "config.openshift.io", "clusterversions", "", "version", "update"},
		{"", "config.openshift.io", "clusterversions", "status", "version", "patch"},
		{"", "operator.openshift.io", "etcds", "", "cluster", "patch"},
		{"", "", "nodes", "", "node-0", "patch"},
	})
}

// clusterState is valid from a revision of the API server's etcd until the next state.
type clusterState struct {
	mode                    configv1.TopologyMode
	nodes, members, healthy int // control-plane nodes; healthy is negative if the list of members cannot be read
	changing                bool
	since                   int64
}

func (s clusterState) size() int {
	if s.healthy < 0 {
		return max(s.nodes, expectedMembers(s.mode))
	}
	return max(s.nodes, s.members, expectedMembers(s.mode))
}

// minReady is how many guards must stay ready, by the rules of this test.
func (s clusterState) minReady() int { return s.size() - maxEvictions(s.mode, s.size()) }

// history is every version of the guard, its budget and the ClusterVersion that etcd has stored, with the state at that
// time.
type history struct {
	*cluster
	stored *clientv3.Client
	from   int64
	states []clusterState
}

func (c *cluster) history() *history {
	stored := must(clientv3.New(clientv3.Config{Endpoints: []string{c.Server.EtcdURL()}, Logger: zap.NewNop()}))
	c.Cleanup(func() { _ = stored.Close() })
	h := &history{cluster: c, stored: stored}
	h.from = h.revision() + 1
	return h
}

func (h *history) revision() int64 { return must(h.stored.Get(h.Context(), "health")).Header.Revision }

func (h *history) record(s clusterState) {
	s.since = h.revision()
	h.states = append(h.states, s)
}

func (h *history) change(s clusterState) {
	h.Helper()
	moving := s
	moving.changing = true
	h.record(moving)
	h.etcd.set(s.members, s.healthy)
	h.setNodes(s.mode, s.nodes)
	h.setTopology(s.mode)
	h.record(s)
}

func (h *history) at(revision int64) clusterState {
	var at clusterState
	for _, w := range h.states {
		if w.since < revision {
			at = w
		}
	}
	return at
}

type objects struct {
	deployment *appsv1.Deployment
	budget     *policyv1.PodDisruptionBudget
	version    *configv1.ClusterVersion
}

// minReady is how many guards the budget keeps ready.
func (o objects) minReady() int {
	if o.deployment == nil || o.budget == nil || o.budget.Spec.MaxUnavailable == nil {
		return 0
	}
	return max(int(*o.deployment.Spec.Replicas)-o.budget.Spec.MaxUnavailable.IntValue(), 0)
}

// unmanaged reports whether the cluster-version-operator has observed both entries, or there is no ClusterVersion.
func (o objects) unmanaged() bool {
	if o.version == nil {
		return true
	}
	entry := func(kind, group string) bool {
		return slices.Contains(o.version.Spec.Overrides,
			configv1.ComponentOverride{Kind: kind, Group: group, Namespace: namespace, Name: guardName, Unmanaged: true})
	}
	return o.version.Status.ObservedGeneration == o.version.Generation && entry("Deployment", "apps") && entry("PodDisruptionBudget", "policy")
}

// next returns the objects after an event, and whether the controller caused it: the guard has changed, but not to its
// manifest.
func (h *history) next(before objects, event *clientv3.Event) (now objects, ours bool) {
	h.Helper()
	live := &unstructured.Unstructured{}
	now = before
	changed := false
	switch string(event.Kv.Key) {
	case "/registry/deployments/openshift-etcd/etcd-quorum-guard":
		now.deployment = decoded[appsv1.Deployment](h, event, live)
		was, is := ptr.Deref(before.deployment, appsv1.Deployment{}), ptr.Deref(now.deployment, appsv1.Deployment{})
		changed = !equality.Semantic.DeepEqual(was.Spec, is.Spec)
	case "/registry/poddisruptionbudgets/openshift-etcd/etcd-quorum-guard":
		now.budget = decoded[policyv1.PodDisruptionBudget](h, event, live)
		was, is := ptr.Deref(before.budget, policyv1.PodDisruptionBudget{}), ptr.Deref(now.budget, policyv1.PodDisruptionBudget{})
		changed = !equality.Semantic.DeepEqual(was.Spec, is.Spec)
	case "/registry/config.openshift.io/clusterversions/version":
		now.version = decoded[configv1.ClusterVersion](h, event, live)
	}
	return now, changed && !h.cvo.Matches(live)
}

func decoded[T any](h *history, event *clientv3.Event, live *unstructured.Unstructured) *T {
	h.Helper()
	if event.Type == clientv3.EventTypeDelete {
		return nil
	}
	object := new(T)
	h.NoError(errors.Join(json.Unmarshal(event.Kv.Value, object), live.UnmarshalJSON(event.Kv.Value)))
	return object
}

// check reports violations of the invariant of docs/etcdguard-handover.md, and returns the number of the controller's
// writes.
func (h *history) check() (writes int) {
	h.Helper()
	last := h.revision()
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(h.Context()), time.Minute)
	defer cancel()
	var now objects
	for answer := range h.stored.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(h.from), clientv3.WithProgressNotify()) {
		h.NoError(answer.Err())
		for _, event := range answer.Events {
			if event.Kv.ModRevision > last {
				return writes
			}
			before, made := now, false
			if now, made = h.next(before, event); made {
				writes++
				h.checkWrite(event.Kv.ModRevision, before, now)
			}
		}
		if answer.Header.Revision >= last {
			return writes
		}
	}
	h.Fatalf("the history ends too early: %v", ctx.Err())
	return writes
}

func (h *history) checkWrite(revision int64, before, now objects) {
	h.Helper()
	s := h.at(revision)
	fault := func(is bool, format string, args ...any) {
		h.Helper()
		if is {
			h.Errorf("revision %d, %+v: %s", revision, s, fmt.Sprintf(format, args...))
		}
	}
	fault(!now.unmanaged(), "the cluster-version-operator may also write")
	deleted := now.deployment == nil && before.deployment != nil || now.budget == nil && before.budget != nil
	switch {
	case s.changing:
	case s.mode == sr:
		fault(deleted && (s.healthy < 0 || s.members > 1), "a guard was deleted while etcd has several members, or its members are not known")
	default:
		fault(deleted, "a guard was deleted")
		weaker := !deleted && now.minReady() < before.minReady()
		fault(weaker && (now.minReady() < s.minReady() || s.healthy < expectedMembers(s.mode)), "%d guards are kept ready, before %d; want %d",
			now.minReady(), before.minReady(), s.minReady())
	}
}

func (h *history) checkSettled(s clusterState) error {
	if s.mode == sr {
		return h.checkGuard(0, 0, true)
	}
	n := s.size()
	// The release's guard is correct for three members without an arbiter.
	return h.checkGuard(n, maxEvictions(s.mode, n), n != 3 || s.mode == arbiter)
}

// randomState returns a cluster of any topology, half of the time with a faulty etcd.
func randomState(random *rand.Rand) clusterState {
	s := healthyState([]configv1.TopologyMode{sr, dual, arbiter, ha, ha}[random.IntN(5)], 0)
	s.nodes = map[configv1.TopologyMode][]int{sr: {1, 1, 1}, dual: {2, 2, 2}, arbiter: {3, 3, 3}, ha: {3, 4, 5}}[s.mode][random.IntN(3)]
	s.members, s.healthy = s.nodes, s.nodes
	if random.IntN(2) == 0 {
		s.members += random.IntN(3)
		s.healthy = random.IntN(s.members + 1)
		if random.IntN(3) == 0 {
			s.healthy = -1
		}
	}
	return s
}

func healthyState(mode configv1.TopologyMode, n int) clusterState {
	return clusterState{mode: mode, nodes: n, members: n, healthy: n}
}

// TestCrashAnywhere shows R-ETC-3: the controller crashes before, at or after any request, requests are delayed, and
// the cluster-version-operator acts at any moment. The guard is never missing, too weak or written by two, and correct
// in the end.
func TestCrashAnywhere(t *testing.T) {
	const randomSeed = 1
	wantCrashes := 240
	if testing.Short() {
		wantCrashes = 40
	}
	random := rand.New(rand.NewPCG(randomSeed, 0))
	c := install(t, ha, 3)
	h := c.history()
	h.record(healthyState(ha, 3)) // the history begins with the objects that are created next
	c.Delete(deploymentObject, budgetObject, versionObject)
	c.Create("installer", newVersion())
	c.cvo.RunOnce()

	crashes, settled, delayed := 0, 0, 0
	for step := 0; crashes < wantCrashes; step++ {
		s := randomState(random)
		h.change(s)
		for stable := false; !stable; {
			l := c.reconciler()
			mode := apiserver.CrashMode(random.IntN(int(apiserver.CrashModes)))
			if random.IntN(5) < 3 {
				l.CrashInjector.CrashAtWrite(1+random.IntN(2), mode)
			} else {
				l.CrashInjector.CrashAt(1+random.IntN(14), mode)
			}
			l.CrashInjector.BeforeRequest(func(r *http.Request) {
				if r.Method != http.MethodGet && random.IntN(4) == 0 {
					c.cvo.RunOnce()
				}
			})
			result, _ := l.Try() // it may fail by the crash
			if l.CrashInjector.Crashed() {
				crashes++
			} else {
				stable = result.Reason != "TakingOver"
				c.cvo.RunOnce()
			}
			if l.CrashInjector.DelayedWrites() > 0 && random.IntN(2) == 0 {
				l.CrashInjector.DeliverDelayed()
				delayed++
			}
		}
		if step%6 != 5 {
			continue
		}
		l := c.reconciler()
		l.CrashInjector.DeliverDelayed()
		s = healthyState(s.mode, s.nodes)
		h.change(s)
		result := l.Settle()
		if err := h.checkSettled(s); err != nil {
			t.Fatalf("step %d, %+v, %v: %v", step, s, result, err)
		}
		l.CheckNoWrites()
		settled++
	}
	ours := h.check()
	t.Logf("random seed %d: %d crashes, %d delayed requests, settled %d times, %d writes to the guard", randomSeed, crashes, delayed, settled, ours)
	if ours < wantCrashes/4 || settled == 0 || delayed == 0 {
		t.Error("too few writes, delayed requests or settled states")
	}
}

// The account may change nothing of objects of others but what the module patches.
func TestPolicies(t *testing.T) {
	c := install(t, sr, 1)
	c.TestPolicies(
		modules.Change{Object: versionObject, Patch: `{"spec":{"overrides":null}}`},
		modules.Change{Object: versionObject, Patch: `{"spec":{"desiredUpdate":{"image":"attacker"}}}`},
		modules.Change{Object: etcdObject, Status: true, Patch: `{"status":{"conditions":[{"type":"Degraded","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
	)
}
