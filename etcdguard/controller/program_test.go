package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
	"github.com/solonode/sno/patch/patchtest"
)

// TestFollowsTheCluster shows R-SNO-7 and R-SNO-4. The program, with the permissions of config/rbac only, follows topology, nodes and certificates,
// and at rest nothing is written.
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
	c.become(ha, 5)
	inForce(metav1.ConditionFalse, "CertificateMissing")
	c.guard(3, 1, false)
	c.installCertificates()
	for _, stage := range []struct {
		mode              configv1.TopologyMode
		n, guards, mayAll int
	}{{ha, 5, 5, 2}, {sr, 1, 0, 0}, {arbiter, 3, 3, 1}} {
		c.become(stage.mode, stage.n)
		c.Eventually("it is right", func() error { return c.hasGuard(stage.guards, stage.mayAll, true) })
		inForce(metav1.ConditionTrue, "AsExpected")
		p.CheckNoWrites(3)
	}
	c.Delete(deploymentObject)
	c.Eventually("it is recreated", func() error { return c.hasGuard(3, 1, true) })

	events := c.Events(metav1.NamespaceDefault)
	if events["Warning CertificateMissing"]+events["Normal CertificateMissing"] == 0 || events["Normal AsExpected"] == 0 {
		t.Errorf("events: %v", events)
	}
	if n, err := p.Metric("sno_apply_total", `module="etcdguard"`, `result="applied"`); err != nil || n == 0 {
		t.Errorf("%v writes counted, %v", n, err)
	}
	p.Stop()
}

// Plain Kubernetes serves neither ClusterVersion nor Etcd: nothing is claimed.
func TestWithoutOpenShift(t *testing.T) {
	long(t)
	t.Parallel()
	c := newCluster(suite.ClusterOn(t, patchtest.StartAPIServer(t, patchtest.Options{CRDs: []string{patchtest.Infrastructures}})))
	c.installCertificates()
	c.become(ha, 5)
	p := c.start()
	p.WaitForLog("Working without kinds that the cluster does not serve")
	c.Eventually("there is a guard", func() error {
		d := patchtest.Find[appsv1.Deployment](c.Cluster, deploymentObject)
		if d == nil || *d.Spec.Replicas != 5 {
			return errors.New("there is none, or it is wrong")
		}
		c.CompleteRollouts(deploymentObject)
		return p.HasMetric(1, "sno_patch_in_force")()
	})
	if got := c.budget().Spec.MaxUnavailable.IntValue(); got != 2 {
		t.Errorf("maxUnavailable %d", got)
	}
	p.Stop()
}

// long skips a test that starts servers or processes of its own with -short.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long; make proof runs it")
	}
}

// follows changes the cluster, and kills the controller or the API server at random moments, while the cluster-version-operator works all the time.
func (c *cluster) follows(randomSeed uint64, worlds []world, kill func()) {
	c.Helper()
	random := rand.New(rand.NewPCG(randomSeed, 0))
	h := c.history()
	defer c.cvo.RunInBackground()()
	for _, w := range worlds {
		h.become(w)
		until := h.revision() + random.Int64N(5)
		c.Eventually("something is written", func() error {
			if now := h.revision(); now < until {
				return fmt.Errorf("%d of %d", now, until)
			}
			return nil
		})
		kill()
		c.Eventually("it is right", func() error { return h.rest(w) })
	}
	if ours := h.check(); ours < 6 {
		c.Errorf("only %d writes of ours", ours)
	}
}

func TestProcessKilled(t *testing.T) {
	long(t)
	c := install(t, ha, 3)
	p := c.start()
	c.follows(1, []world{
		healthyWorld(ha, 5), healthyWorld(sr, 1), healthyWorld(dual, 2), healthyWorld(arbiter, 3), healthyWorld(ha, 3), healthyWorld(ha, 5),
	}, func() { p.Kill(); p = c.start() })
	p.Stop()
}

// killable returns a program for patchtest that restarts the API server whenever it is killed, and a function that kills it.
func killable(t *testing.T) (program string, kill func(*cluster)) {
	t.Helper()
	binaries, folder := must(patchtest.Binaries()), t.TempDir()
	program, pid := filepath.Join(folder, "kube-apiserver"), filepath.Join(folder, "pid")
	script := fmt.Sprintf(`#!/bin/sh
[ "$1" != --help ] || exec '%[1]s' "$@"
trap 'kill "$child"; wait "$child"; exit 0' TERM INT
while :; do
	'%[1]s' "$@" &
	child=$!
	echo "$child" >'%[2]s.new' && mv '%[2]s.new' '%[2]s'
	wait "$child"
done
`, filepath.Join(binaries, "kube-apiserver"), pid)
	must(0, os.WriteFile(program, []byte(script), 0o700)) //nolint:gosec // it is run
	read := func() int { return must(strconv.Atoi(strings.TrimSpace(string(must(os.ReadFile(pid)))))) }
	return program, func(c *cluster) {
		c.Helper()
		before := read()
		c.NoError(syscall.Kill(before, syscall.SIGKILL))
		c.Eventually("the API server is back", func() error {
			if read() == before {
				return errors.New("it is still the old one")
			}
			_, err := c.Admin.RESTMapper().ResourceFor(deploymentObject.GroupVersion().WithResource("deployments"))
			return errors.Join(err, c.Admin.Get(c.Context(), controller.Infrastructure.Key(), controller.Infrastructure.Unstructured()))
		})
	}
}

func TestAPIServerKilled(t *testing.T) {
	long(t)
	t.Parallel()
	program, kill := killable(t)
	options := options
	options.Program = program
	c := newCluster(suite.ClusterOn(t, patchtest.StartAPIServer(t, options)))
	c.install(ha, 3)
	p := c.start()
	c.follows(2, []world{healthyWorld(ha, 5), healthyWorld(sr, 1), healthyWorld(arbiter, 3)}, func() { kill(c) })
	p.Stop()
}

// Two controllers without leader election: resourceVersions keep their writes apart.
func TestTwoWithoutElection(t *testing.T) {
	c := install(t, ha, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	for range 2 {
		l := c.reconciler()
		both.Go(func() {
			for ctx.Err() == nil {
				_, _ = l.Try() // the other one may have changed what was read
			}
		})
	}
	c.follows(3, []world{healthyWorld(ha, 5), healthyWorld(arbiter, 3), healthyWorld(sr, 1), healthyWorld(ha, 3)}, func() {})
	cancel()
	both.Wait()
}

func TestFlags(t *testing.T) {
	t.Parallel()
	suite.TestFlags(t, map[string]patchtest.Invocation{
		"own flags":   {Args: []string{"--help"}, Output: []string{"-etcd-endpoints", "-image"}},
		"no endpoint": {Args: []string{"--etcd-endpoints=ftp://x:1"}, Code: 2, Output: []string{"--etcd-endpoints"}},
	})
}

// TestFollowsTheCluster shows that the rights are enough, since the program runs with them.
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

// world is the state of a cluster from a revision of the API server's etcd on, until the next.
type world struct {
	mode configv1.TopologyMode
	// nodes have a role; healthy is negative where the list of members cannot be read.
	nodes, members, healthy int
	// moving means that it is being changed: then only the owner of the guard is checked.
	moving bool
	since  int64
}

func (w world) size() int {
	if w.healthy < 0 {
		return max(w.nodes, expected(w.mode))
	}
	return max(w.nodes, w.members, expected(w.mode))
}

// need is how many guards must stay, by the rules and not by the code.
func (w world) need() int { return w.size() - mayGo(w.mode, w.size()) }

// history is every version of the guard, its budget and the ClusterVersion in order, with the world at the time. etcd keeps them all, also while the
// API server is away.
type history struct {
	*cluster
	stored *clientv3.Client
	from   int64
	worlds []world
}

func (c *cluster) history() *history {
	stored := must(clientv3.New(clientv3.Config{Endpoints: []string{c.Server.EtcdURL()}, Logger: zap.NewNop()}))
	c.Cleanup(func() { _ = stored.Close() })
	h := &history{cluster: c, stored: stored}
	h.from = h.revision() + 1
	return h
}

func (h *history) revision() int64 { return must(h.stored.Get(h.Context(), "health")).Header.Revision }

// now sets the world from now on.
func (h *history) now(w world) {
	w.since = h.revision()
	h.worlds = append(h.worlds, w)
}

// become changes the cluster.
func (h *history) become(w world) {
	h.Helper()
	moving := w
	moving.moving = true
	h.now(moving)
	h.etcd.set(w.members, w.healthy)
	h.resize(w.mode, w.nodes)
	h.flip(w.mode)
	h.now(w)
}

func (h *history) at(revision int64) world {
	var at world
	for _, w := range h.worlds {
		if w.since < revision {
			at = w
		}
	}
	return at
}

// state is the live objects at one moment.
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

// unmanaged reports whether the cluster-version-operator has observed both entries for the guard, or there is no ClusterVersion.
func (s state) unmanaged() bool {
	if s.version == nil {
		return true
	}
	entry := func(kind, group string) bool {
		return slices.Contains(s.version.Spec.Overrides,
			configv1.ComponentOverride{Kind: kind, Group: group, Namespace: namespace, Name: guardName, Unmanaged: true})
	}
	return s.version.Status.ObservedGeneration == s.version.Generation && entry("Deployment", "apps") && entry("PodDisruptionBudget", "policy")
}

// next returns the state after an event, and whether the controller caused it: the guard has changed, and not to its manifest. The
// cluster-version-operator deletes nothing.
func (h *history) next(before state, event *clientv3.Event) (now state, ours bool) {
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

// decoded returns nil for a deletion.
func decoded[T any](h *history, event *clientv3.Event, live *unstructured.Unstructured) *T {
	h.Helper()
	if event.Type == clientv3.EventTypeDelete {
		return nil
	}
	object := new(T)
	h.NoError(errors.Join(json.Unmarshal(event.Kv.Value, object), live.UnmarshalJSON(event.Kv.Value)))
	return object
}

// check reports every violation of the invariant of docs/etcdguard-handover.md in the history, and returns the number of the controller's writes.
func (h *history) check() (ours int) {
	h.Helper()
	last := h.revision()
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(h.Context()), time.Minute)
	defer cancel()
	var now state
	for answer := range h.stored.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(h.from), clientv3.WithProgressNotify()) {
		h.NoError(answer.Err())
		for _, event := range answer.Events {
			if event.Kv.ModRevision > last {
				return ours
			}
			before, made := now, false
			if now, made = h.next(before, event); made {
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

func (h *history) judge(revision int64, before, now state) {
	h.Helper()
	w := h.at(revision)
	fault := func(is bool, format string, args ...any) {
		h.Helper()
		if is {
			h.Errorf("revision %d, %+v: %s", revision, w, fmt.Sprintf(format, args...))
		}
	}
	fault(!now.unmanaged(), "the cluster-version-operator may write as well")
	deleted := now.deployment == nil && before.deployment != nil || now.budget == nil && before.budget != nil
	switch {
	case w.moving:
	case w.mode == sr:
		fault(deleted && (w.healthy < 0 || w.members > 1), "a guard was deleted while etcd has several members, or its members are not known")
	default:
		fault(deleted, "a guard was deleted")
		weaker := !deleted && now.strength() < before.strength()
		fault(weaker && (now.strength() < w.need() || w.healthy < expected(w.mode)), "%d guards stay, after %d; %d are needed",
			now.strength(), before.strength(), w.need())
	}
}

func (h *history) rest(w world) error {
	if w.mode == sr {
		return h.hasGuard(0, 0, true)
	}
	n := w.size()
	// What the release brings is right for three members without an arbiter.
	return h.hasGuard(n, mayGo(w.mode, n), n != 3 || w.mode == arbiter)
}

// someWorld returns a cluster of any topology. Every other time something is wrong with etcd.
func someWorld(random *rand.Rand) world {
	w := healthyWorld([]configv1.TopologyMode{sr, dual, arbiter, ha, ha}[random.IntN(5)], 0)
	w.nodes = map[configv1.TopologyMode][]int{sr: {1, 1, 1}, dual: {2, 2, 2}, arbiter: {3, 3, 3}, ha: {3, 4, 5}}[w.mode][random.IntN(3)]
	w.members, w.healthy = w.nodes, w.nodes
	if random.IntN(2) == 0 {
		w.members += random.IntN(3)
		w.healthy = random.IntN(w.members + 1)
		if random.IntN(3) == 0 {
			w.healthy = -1
		}
	}
	return w
}

func healthyWorld(mode configv1.TopologyMode, n int) world {
	return world{mode: mode, nodes: n, members: n, healthy: n}
}

// TestCrashAnywhere shows R-ETC-3. The controller is cut off at any request, hundreds of times, while the cluster-version-operator acts at any moment
// and requests arrive when their process is long dead: the guard is never missing or too weak, two never write it, and in the end it is right.
func TestCrashAnywhere(t *testing.T) {
	const randomSeed = 1
	kills := 240
	if testing.Short() {
		kills = 40
	}
	random := rand.New(rand.NewPCG(randomSeed, 0))
	c := install(t, ha, 3)
	h := c.history()
	// The history begins with what is there.
	h.now(healthyWorld(ha, 3))
	c.Delete(deploymentObject, budgetObject, versionObject)
	c.Create("installer", newVersion())
	c.cvo.RunOnce()

	killed, rests, hung := 0, 0, 0
	for step := 0; killed < kills; step++ {
		w := someWorld(random)
		h.become(w)
		for atRest := false; !atRest; {
			l := c.reconciler()
			// It dies at any request of its first round, or at one of its first writes.
			death := patchtest.CrashMode(random.IntN(int(patchtest.CrashModes)))
			if random.IntN(5) < 3 {
				l.CrashInjector.CrashAtWrite(1+random.IntN(2), death)
			} else {
				l.CrashInjector.CrashAt(1+random.IntN(14), death)
			}
			l.CrashInjector.BeforeRequest(func(r *http.Request) {
				if r.Method != http.MethodGet && random.IntN(4) == 0 {
					c.cvo.RunOnce()
				}
			})
			result, _ := l.Try() // it dies, it waits for the cluster-version-operator, or it has nothing to do
			if l.CrashInjector.Crashed() {
				killed++
			} else {
				atRest = result.Reason != "TakingOver"
				c.cvo.RunOnce()
			}
			if l.CrashInjector.DelayedWrites() > 0 && random.IntN(2) == 0 {
				l.CrashInjector.DeliverDelayed()
				hung++
			}
		}
		if step%6 != 5 {
			continue
		}
		l := c.reconciler()
		l.CrashInjector.DeliverDelayed()
		w = healthyWorld(w.mode, w.nodes)
		h.become(w)
		result := l.Settle()
		if err := h.rest(w); err != nil {
			t.Fatalf("step %d, %+v, %v: %v", step, w, result, err)
		}
		l.CheckNoWrites()
		rests++
	}
	ours := h.check()
	t.Logf("random seed %d: %d kills, %d late requests, %d times at rest, %d writes to the guard", randomSeed, killed, hung, rests, ours)
	if ours < kills/4 || rests == 0 || hung == 0 {
		t.Error("too little happened for this to show anything")
	}
}
