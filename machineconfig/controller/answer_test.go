package controller

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

// evictions are the evictions that we asked for, and cordons our patches of nodes that are no answers, while something happens.
func (c *cluster) writes(during func()) (evictions, cordons, answers int) {
	c.Helper()
	for _, write := range c.server.WritesDuring(c, us, during) {
		switch {
		case strings.Contains(write.URI, "/eviction"):
			evictions++
		case strings.Contains(write.URI, "/nodes/") && strings.Contains(write.URI, "fieldManager="):
			answers++
		case strings.Contains(write.URI, "/nodes/"):
			cordons++
		default:
			c.Errorf("an unexpected write: %s", write)
		}
	}
	return evictions, cordons, answers
}

// TestSingleReplicaIsNotDrained shows R-MCO-2: on a control plane of one node a request for a drain is answered at
// once. Nothing is cordoned, and nothing evicted.
func TestSingleReplicaIsNotDrained(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.addNode("m0", master, worker)
	c.addNode("w0", worker)
	c.pod("m0", "one", nil)
	c.pod("w0", "two", nil)
	l := c.looker()
	c.ask("m0", "drain-rendered-master-1")
	c.ask("w0", "drain-rendered-worker-1")
	var result patch.Result
	evictions, cordons, answers := c.writes(func() { result = l.once() })
	if evictions != 0 || cordons != 0 || answers != 2 {
		t.Errorf("%d evictions, %d cordons, %d answers", evictions, cordons, answers)
	}
	l.says(result, patch.InForce, "AsExpected")
	c.must(c.is("m0", "drain-rendered-master-1", false)())
	c.must(c.is("w0", "drain-rendered-worker-1", false)())
	l.heard("DrainNotNeeded", "nothing is drained")
	l.atRest()

	// The next config comes before it is back.
	c.ask("w0", "drain-rendered-worker-2")
	l.once()
	c.must(c.is("w0", "drain-rendered-worker-2", false)())

	c.ask("m0", "uncordon-rendered-master-1")
	evictions, cordons, answers = c.writes(func() { l.once() })
	if evictions != 0 || cordons != 0 || answers != 1 {
		t.Errorf("%d evictions, %d cordons, %d answers of what is not cordoned", evictions, cordons, answers)
	}
	c.must(c.is("m0", "uncordon-rendered-master-1", false)())
	l.atRest()
}

// Everywhere else everything goes that kubectl drain evicts, and the answer comes when it is gone.
func TestDrained(t *testing.T) {
	modes := []configv1.TopologyMode{ha, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode, configv1.ExternalTopologyMode}
	if testing.Short() {
		modes = modes[:1]
	}
	for _, mode := range modes {
		t.Run("topology "+string(mode), func(t *testing.T) {
			c := newCluster(t, shared.Server(t), mode)
			c.addNode("w0", worker)
			c.addNode("w1", worker)
			c.must(c.admin.Create(t.Context(), daemonSet(c.namespace)))
			c.pod("w0", "nobodys", nil)
			c.pod("w0", "local", func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			})
			c.pod("w0", "daemon", func(p *corev1.Pod) { p.OwnerReferences = ownedByDaemonSet("daemon") })
			c.pod("w0", "orphan", func(p *corev1.Pod) { p.OwnerReferences = ownedByDaemonSet("gone") })
			c.pod("w1", "elsewhere", nil)
			l := c.looker("--drain-timeout=5s")
			c.ask("w0", "drain-rendered-worker-1")
			var result patch.Result
			evictions, cordons, answers := c.writes(func() { result = l.rest() })
			if evictions != 3 || cordons != 1 || answers != 1 {
				t.Errorf("%d evictions, %d cordons, %d answers", evictions, cordons, answers)
			}
			l.says(result, patch.InForce, "AsExpected")
			c.must(c.is("w0", "drain-rendered-worker-1", true)())
			if diff := cmp.Diff([]string{"daemon", "elsewhere"}, c.pods()); diff != "" {
				t.Errorf("pods that are left (-want +got):\n%s", diff)
			}
			l.heard("DrainStarted", "evicted: 3")
			l.heard("Drained")
			l.atRest()

			c.ask("w0", "uncordon-rendered-worker-1")
			evictions, cordons, answers = c.writes(func() { l.rest() })
			if evictions != 0 || cordons != 1 || answers != 1 {
				t.Errorf("%d evictions, %d cordons, %d answers to an uncordon", evictions, cordons, answers)
			}
			c.must(c.is("w0", "uncordon-rendered-worker-1", false)())
			l.heard("Uncordoned")
			l.atRest()
		})
	}
}

func daemonSet(namespace string) *appsv1.DaemonSet {
	labels := map[string]string{"app": "daemon"}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "daemon"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
		},
	}}
}

func ownedByDaemonSet(name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: "1", Controller: ptr.To(true)}}
}

// A budget that does not let go: the try ends, says so, and the next one works when the budget lets go. Meanwhile there is no answer.
func TestBudgetThatHolds(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	c.pod("w0", "held", nil)
	c.budget("held", 0)
	l := c.looker("--drain-timeout=1s")
	c.ask("w0", "drain-rendered-worker-1")
	var result patch.Result
	patchtest.Eventually(t, "a try fails", func() error {
		if answer := c.answer("w0"); answer != "" {
			t.Fatalf("answered %q while a budget holds", answer)
		}
		if result = l.once(); result.State != patch.Failed {
			return fmt.Errorf("it says %s", result)
		}
		return nil
	})
	l.says(result, patch.Failed, "DrainFailed")
	if result.After <= 0 {
		t.Error("nobody looks when the next try is due")
	}
	c.must(c.is("w0", "", true)())
	if diff := cmp.Diff([]string{"held"}, c.pods()); diff != "" {
		t.Errorf("pods that are left (-want +got):\n%s", diff)
	}
	l.heard("Warning DrainFailed", "tried again")

	c.budget("held", 1)
	patchtest.Eventually(t, "the next try works", func() error {
		l.once()
		return c.is("w0", "drain-rendered-worker-1", true)()
	})
	l.says(l.rest(), patch.InForce, "AsExpected")
	l.atRest()
}

// Two evictions under one budget can meet in the API server, and one of them is told to come again. That is no failure.
func TestEvictionsThatMeet(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	c.pod("w0", "one", nil)
	c.pod("w0", "two", nil)
	l := c.looker("--drain-timeout=5s")
	var met atomic.Int64
	l.fault = func(r *http.Request) *http.Response {
		if !strings.HasSuffix(r.URL.Path, "/one/eviction") || met.Add(1) > 2 {
			return nil
		}
		const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"the object has been modified"}`
		return &http.Response{
			StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}
	}
	c.ask("w0", "drain-a")
	l.says(l.rest(), patch.InForce, "AsExpected")
	c.must(c.is("w0", "drain-a", true)())
	if left := c.pods(); len(left) > 0 || met.Load() != 3 {
		t.Errorf("%v are left, asked %d times", left, met.Load())
	}
}

// A pod that tolerates the cordon has its successor on the same node at once. It is evicted, as by kubectl drain, and its successors stay: to
// evict them too would never end.
func TestPodThatComesBack(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	c.pod("w0", "tolerant-0", tolerant)
	l := c.looker("--drain-timeout=5s")
	var successors atomic.Int64
	l.fault = func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/eviction") {
			c.pod("w0", fmt.Sprintf("tolerant-%d", successors.Add(1)), tolerant)
		}
		return nil
	}
	c.ask("w0", "drain-a")
	l.says(l.rest(), patch.InForce, "AsExpected")
	c.must(c.is("w0", "drain-a", true)())
	if diff := cmp.Diff([]string{"tolerant-1"}, c.pods()); diff != "" {
		t.Errorf("pods that are left (-want +got):\n%s", diff)
	}
}

// A pod that comes to the node while it is drained, because the scheduler had sent it there before, goes as well.
func TestPodThatComesLate(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	c.pod("w0", "one", nil)
	l := c.looker("--drain-timeout=5s")
	var late sync.Once
	l.fault = func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/one/eviction") {
			late.Do(func() { c.pod("w0", "late", nil) })
		}
		return nil
	}
	c.ask("w0", "drain-a")
	l.says(l.rest(), patch.InForce, "AsExpected")
	c.must(c.is("w0", "drain-a", true)())
	if left := c.pods(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// Whatever changes in the middle stops a drain: nothing is evicted after that.
func TestChangesInTheMiddle(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*cluster)
		answer   string
		cordoned bool
	}{
		"uncordon":                    {func(c *cluster) { c.ask("w0", "uncordon-a") }, "uncordon-a", false},
		"another config":              {func(c *cluster) { c.ask("w0", "drain-b") }, "", true},
		"garbage":                     {func(c *cluster) { c.ask("w0", "nonsense") }, "", true},
		"no request":                  {func(c *cluster) { c.ask("w0", "") }, "", true},
		"a control plane of one node": {func(c *cluster) { c.flip(sr) }, "drain-a", false},
		"opted out": {func(c *cluster) {
			c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0"}}, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"machineconfig"}}}`)
		}, "", true},
		"a stock controller": {func(c *cluster) { c.installStock() }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, shared.Server(t), ha)
			c.addNode("w0", worker)
			c.pod("w0", "held", nil)
			c.budget("held", 0)
			l := c.looker("--drain-timeout=5s")
			c.ask("w0", "drain-a")
			l.once()
			l.heard("DrainStarted")
			test.change(c)
			if name == "another config" {
				l.once()
				<-l.drains.wake // the first has ended
				l.once()
				if running := l.drains.running(); len(running) != 1 {
					t.Errorf("%v run", running)
				}
			} else {
				l.rest()
				c.budget("held", 1)
				l.rest()
				if len(l.drains.all) > 0 {
					t.Errorf("a drain goes on: %v", l.drains.all)
				}
			}
			c.must(c.is("w0", test.answer, test.cordoned)())
			if diff := cmp.Diff([]string{"held"}, c.pods()); diff != "" {
				t.Errorf("pods that are left (-want +got):\n%s", diff)
			}
		})
	}
}

// A node that is deleted in the middle ends its drain, and one that is made anew under its name is another node.
func TestNodeGoesInTheMiddle(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	c.pod("w0", "held", nil)
	c.budget("held", 0)
	l := c.looker("--drain-timeout=5s")
	c.ask("w0", "drain-a")
	l.once()
	l.heard("DrainStarted")
	c.must(c.admin.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0"}}))
	l.says(l.rest(), patch.InForce, "AsExpected")
	c.addNode("w0", worker)
	l.rest()
	c.must(c.is("w0", "", false)())
	l.atRest()
}

// What the process knows is on the nodes: another one goes on where the first was cut off.
func TestGoesOnAfterARestart(t *testing.T) {
	c := newCluster(t, shared.Server(t), ha)
	c.addNode("w0", worker)
	c.addNode("w1", worker)
	c.pod("w1", "held", nil)
	c.budget("held", 0)
	first := c.looker("--drain-timeout=5s")
	c.ask("w1", "drain-a")
	first.once()
	first.heard("DrainStarted")
	first.end()
	c.must(c.is("w1", "", true)())
	// In the order of names it would be another one's turn, and a pause keeps nodes from leaving that are still there.
	c.ask("w0", "drain-a")
	c.pool("worker", `,"paused":true`)
	second := c.looker("--drain-timeout=5s")
	patchtest.Eventually(t, "it is drained", c.released("held", func() error {
		second.once()
		return c.is("w1", "drain-a", true)()
	}))
	second.rest()
	c.must(c.is("w0", "", false)())
}

// A request that cannot be understood gets no answer, whatever the topology, and does not keep others from theirs.
func TestGarbage(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{sr, ha} {
		c := newCluster(t, shared.Server(t), mode)
		garbage := []string{"nonsense", "drain", "drain-", "reboot-rendered-worker-1", "Drain-a", "drain-a\n", "drain-" + strings.Repeat("x", 5000)}
		for i, request := range garbage {
			name := fmt.Sprintf("w%d", i)
			c.addNode(name, worker)
			c.pod(name, "on-"+name, nil)
			c.ask(name, request)
		}
		// What it says of another node concerns only the node that says it.
		c.addNode("asks", worker)
		c.ask("asks", "drain-w0")
		l := c.looker()
		var result patch.Result
		evictions, cordons, answers := c.writes(func() { result = l.rest() })
		if evictions != 0 || (cordons == 1) != (mode == ha) || answers != 1 {
			t.Errorf("%s: %d evictions, %d cordons, %d answers", mode, evictions, cordons, answers)
		}
		l.says(result, patch.Failed, "Invalid")
		for i := range garbage {
			c.must(c.is(fmt.Sprintf("w%d", i), "", false)())
		}
		c.must(c.is("asks", "drain-w0", mode == ha)())
		l.heard("Warning Invalid")
		l.atRest()
		c.clear()
	}
}

// The answer is not taken from a person, only from a stock controller that is gone. Nothing is done that cannot be answered.
func TestAnswerOfSomebodyElse(t *testing.T) {
	for manager, theirs := range map[string]bool{"kubectl-annotate": true, "machine-config-controller": false} {
		c := newCluster(t, shared.Server(t), ha)
		c.addNode("w0", worker)
		c.pod("w0", "one", nil)
		c.must(c.admin.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0"}},
			mergePatch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"uncordon-z"}}}`, machineconfig.LastAppliedDrainAnnotation)), fieldOwner(manager)))
		c.ask("w0", "drain-a")
		l := c.looker()
		result := l.rest()
		if !theirs {
			c.must(c.is("w0", "drain-a", true)())
			c.clear()
			continue
		}
		l.says(result, patch.Blocked, "FieldOwnedByOther")
		c.must(c.is("w0", "uncordon-z", false)())
		l.atRest()
		forced := c.looker("--force-conflicts")
		forced.rest()
		c.must(c.is("w0", "drain-a", true)())
		c.clear()
	}
}

func TestDryRun(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{sr, ha} {
		c := newCluster(t, shared.Server(t), mode)
		c.addNode("w0", worker)
		l := c.looker("--dry-run")
		l.says(l.rest(), patch.InForce, "AsExpected")
		for _, request := range []string{"drain-a", "uncordon-a", "nonsense"} {
			c.ask("w0", request)
			c.server.NoWrites(t, us, func() { l.rest() })
		}
		c.ask("w0", "drain-a")
		l.says(l.rest(), patch.WouldChange, "DryRun")
		c.clear()
	}
}
