package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

// away are the nodes that take no pods.
func (c *cluster) away() []string {
	c.Helper()
	list := &corev1.NodeList{}
	c.must(c.admin.List(c.Context(), list))
	var names []string
	for _, node := range list.Items {
		if node.Spec.Unschedulable {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names
}

// No more nodes are away at once than the pool allows. The others have their turn when one is back, also one that a person had
// cordoned, which no request tells of.
func TestNoMoreThanAllowed(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.pool("worker", `,"maxUnavailable":2`)
	const workers = 6
	for i := range workers {
		name := fmt.Sprintf("w%d", i)
		c.addNode(name, worker)
		c.pod(name, "on-"+name, nil)
	}
	cordon := func(closed bool) {
		c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w5"}}, fmt.Sprintf(`{"spec":{"unschedulable":%v}}`, closed))
	}
	cordon(true)
	for i := range workers - 1 {
		c.ask(fmt.Sprintf("w%d", i), "drain-a")
	}
	l := c.looker()
	result := l.rest()
	l.says(result, patch.Progressing, "Draining")
	if result.After != turnPause {
		t.Errorf("it looks again after %s; no watch tells when a node is back", result.After)
	}
	want := []string{"w0", "w5"}
	if got := c.away(); !slices.Equal(got, want) {
		t.Fatalf("%v are away, want %v", got, want)
	}
	l.atRest()

	cordon(false)
	for i := range workers - 1 {
		l.rest()
		want := []string{fmt.Sprintf("w%d", i), fmt.Sprintf("w%d", i+1)}
		if i == workers-2 {
			want = want[:1]
		}
		if got := c.away(); !slices.Equal(got, want) {
			t.Fatalf("%v are away, want %v", got, want)
		}
		c.ask(fmt.Sprintf("w%d", i), "uncordon-a")
	}
	l.says(l.rest(), patch.InForce, "AsExpected")
	l.atRest()
}

// On a control plane of one node nobody is cordoned, and still no more workers restart at once than the pool allows.
func TestNoMoreThanAllowedWithoutDrains(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.pool("worker", "")
	for _, name := range []string{"w0", "w1", "w2"} {
		c.addNode(name, worker)
		c.ask(name, "drain-a")
	}
	l := c.looker()
	l.says(l.rest(), patch.Progressing, "Draining")
	for _, name := range []string{"w0", "w1", "w2"} {
		l.rest()
		c.must(c.is(name, "drain-a", false)())
		for _, later := range []string{"w1", "w2"} {
			if later > name && c.answer(later) != "" {
				t.Errorf("%s is answered while %s is away", later, name)
			}
		}
		c.ask(name, "uncordon-a")
	}
	l.says(l.rest(), patch.InForce, "AsExpected")
}

// TestPausedPool shows R-MCO-4: a paused pool keeps its nodes from leaving, not from coming back, and the status reports it.
func TestPausedPool(t *testing.T) {
	for _, mode := range []string{"HighlyAvailable", "SingleReplica"} {
		c := newCluster(t, shared.Server(t), ha)
		if mode == "SingleReplica" {
			c.flip(sr)
		}
		c.pool("worker", `,"paused":true,"maxUnavailable":3`)
		c.addNode("w0", worker)
		c.addNode("w1", worker)
		c.pod("w0", "one", nil)
		l := c.looker()
		c.ask("w0", "drain-a")
		c.ask("w1", "uncordon-a")
		c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}, `{"spec":{"unschedulable":true}}`)
		l.says(l.rest(), patch.Progressing, "UpdatesPaused")
		c.must(c.is("w0", "", false)())
		c.must(c.is("w1", "uncordon-a", false)())
		l.atRest()
		c.patch(object("machineconfiguration.openshift.io/v1", "MachineConfigPool", "worker"), `{"spec":{"paused":false}}`)
		l.says(l.rest(), patch.InForce, "AsExpected")
		c.must(c.is("w0", "drain-a", mode == "HighlyAvailable")())
		c.clear()
	}
}

// A pool that does not say how many of its nodes may be away gives leave to none of them. Other pools do.
func TestBadMaxUnavailable(t *testing.T) {
	for _, bad := range []string{`"many"`, `-1`, `"50% "`} {
		c := newCluster(t, shared.Server(t), ha)
		c.pool("worker", `,"maxUnavailable":`+bad)
		c.pool("infra", "")
		c.addNode("w0", worker)
		c.addNode("i0", worker, "infra")
		c.ask("w0", "drain-a")
		c.ask("i0", "drain-a")
		l := c.looker()
		l.says(l.rest(), patch.Failed, "Invalid")
		c.must(c.is("w0", "", false)())
		c.must(c.is("i0", "drain-a", true)())
		l.atRest()
		c.patch(object("machineconfiguration.openshift.io/v1", "MachineConfigPool", "worker"), `{"spec":{"maxUnavailable":"50%"}}`)
		l.says(l.rest(), patch.InForce, "AsExpected")
		c.must(c.is("w0", "drain-a", true)())
		c.clear()
	}
}

// A node with both roles belongs to the master pool alone.
func TestBothRoles(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.pool("master", "")
	c.pool("worker", `,"maxUnavailable":"100%"`)
	for i := range 3 {
		c.addNode(fmt.Sprintf("m%d", i), master, worker)
		c.ask(fmt.Sprintf("m%d", i), "drain-a")
	}
	c.addNode("w0", worker)
	c.ask("w0", "drain-a")
	l := c.looker()
	l.says(l.rest(), patch.Progressing, "Draining")
	if got := c.away(); !slices.Equal(got, []string{"m0", "w0"}) {
		t.Errorf("%v are away", got)
	}
}

// What the cache shows may be behind: a node that was answered a moment ago, and is not cordoned, still counts as one that is away.
func TestCacheBehind(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.addNode("w0", worker)
	c.addNode("w1", worker)
	l := c.looker()
	c.ask("w1", "drain-a")
	l.rest()
	c.must(c.is("w1", "drain-a", false)())
	c.ask("w0", "drain-a")
	f, err := l.gather(t.Context())
	c.must(err)
	for i := range f.inputs.Nodes {
		delete(f.inputs.Nodes[i].Annotations, machineconfig.LastAppliedDrainAnnotation)
	}
	l.patcher.answer(t.Context(), f)
	c.must(c.is("w0", "", false)())
}

// Where no drain is needed, a cordon that a person made stays.
func TestCordonOfAPerson(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.addNode("w0", worker)
	c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0"}}, `{"spec":{"unschedulable":true}}`)
	c.ask("w0", "drain-a")
	l := c.looker()
	l.rest()
	c.must(c.is("w0", "drain-a", true)())
}

// With the policy for workers, one is drained when there is room elsewhere. The control-plane node never is.
func TestDrainPolicyForWorkers(t *testing.T) {
	for _, room := range []bool{true, false} {
		c := newCluster(t, shared.Server(t), sr)
		c.pool("master", "")
		c.pool("worker", `,"maxUnavailable":2`)
		capacity := func(name, cpu string) {
			c.patchStatus(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, fmt.Sprintf(
				`{"status":{"capacity":{"cpu":%q,"memory":"8Gi","pods":"100"},"allocatable":{"cpu":%q,"memory":"8Gi","pods":"100"}}}`, cpu, cpu))
			c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, `{"spec":{"taints":null}}`)
		}
		for _, name := range []string{"m0", "w0", "w1"} {
			role := worker
			if name == "m0" {
				role = master
			}
			c.addNode(name, role)
			capacity(name, "1")
		}
		if !room {
			capacity("w1", "100m")
			capacity("m0", "100m")
		}
		c.must(c.admin.Create(t.Context(), replicaSet(c.namespace)))
		owned := func(p *corev1.Pod) {
			p.OwnerReferences = c.ownedByReplicaSet()
			p.Labels = map[string]string{"app": "set"}
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}
		}
		c.pod("w0", "one", owned)
		l := c.looker("--drain-policy=workers")
		c.ask("w0", "drain-a")
		c.ask("m0", "drain-a")
		l.says(l.rest(), patch.InForce, "AsExpected")
		c.must(c.is("m0", "drain-a", false)())
		c.must(c.is("w0", "drain-a", room)())
		if left := len(c.pods()) > 0; left == room {
			t.Errorf("room %v: the pod is left: %v", room, left)
		}
		c.clear()
	}
}

// Once begun, a drain goes on while its pods are on their way, also when they have taken the room that was found for them.
func TestFitIsAskedOnce(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.addNode("w0", worker)
	c.pod("w0", "held", nil)
	c.budget("held", 0)
	l := c.looker("--drain-policy=workers", "--drain-timeout=10s")
	var evictions atomic.Int64
	l.fault = func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/eviction") {
			evictions.Add(1)
		}
		return nil
	}
	j := job{node: "w0", uid: c.node("w0").UID, request: machineconfig.Request{Verb: machineconfig.VerbDrain, Config: "a"}, fits: true}
	c.ask("w0", "drain-a")
	l.drains.settle(t.Context(), []job{j})
	more := func(than int64) func() error {
		return func() error {
			l.once()
			if n := evictions.Load(); n <= than {
				return fmt.Errorf("%d evictions", n)
			}
			return nil
		}
	}
	patchtest.Eventually(t, "it is drained", more(0))
	patchtest.Eventually(t, "that goes on", more(evictions.Load()+1))
	c.must(c.is("w0", "", true)())
}

// Not permitted to evict: it says so.
func TestForbidden(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	l := c.looker("--drain-timeout=1s")
	var err error
	l.nodes.kube, err = newKube(c.server.Config(t, "nobody"))
	c.must(err)
	c.ask("w0", "drain-a")
	l.says(l.once(), patch.Failed, "Forbidden")
	c.must(c.is("w0", "", false)())
}

// A Windows node is in no pool: it holds nobody, and its own request gets no answer, which a person hears of.
func TestWindowsNodes(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.pool("worker", "")
	c.addNode("w0", worker)
	c.addNode("x0", worker)
	windows := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x0"}}
	c.patch(windows, `{"metadata":{"labels":{"kubernetes.io/os":"windows"}}}`)
	c.patchStatus(windows, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
	c.ask("w0", "drain-a")
	l := c.looker()
	l.says(l.rest(), patch.InForce, "AsExpected")
	c.must(c.is("w0", "drain-a", true)())

	c.pod("x0", "stays", nil)
	c.ask("x0", "drain-a")
	l.says(l.rest(), patch.Failed, "Invalid")
	c.must(c.is("x0", "", false)())
	l.atRest()
	c.ask("x0", "")
	l.says(l.rest(), patch.InForce, "AsExpected")
	if got := c.pods(); !slices.Equal(got, []string{"stays"}) {
		t.Errorf("%v are left", got)
	}
}
