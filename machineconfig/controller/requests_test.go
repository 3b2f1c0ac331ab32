package controller

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// writes fails the test unless so many evictions, cordons and acknowledgements are sent, and nothing else.
func (c *cluster) writes(evictions, cordons, acknowledgements int, during func()) {
	c.Helper()
	var got [3]int
	for _, write := range c.Server.WritesDuring(c, suite.User(), during) {
		switch {
		case strings.Contains(write.URI, "/eviction"):
			got[0]++
		case strings.Contains(write.URI, "/nodes/") && strings.Contains(write.URI, "fieldManager="):
			got[2]++
		case strings.Contains(write.URI, "/nodes/"):
			got[1]++
		default:
			c.Errorf("an unexpected write: %s", write)
		}
	}
	if want := [3]int{evictions, cordons, acknowledgements}; got != want {
		c.Errorf("%v evictions, cordons and acknowledgements, want %v", got, want)
	}
}

// TestSingleReplicaIsNotDrained shows R-MCO-2: on a SingleReplica control plane a drain is acknowledged at once, without a cordon or an eviction.
func TestSingleReplicaIsNotDrained(t *testing.T) {
	c := newCluster(t, sr, "m0", "w0")
	c.pod("m0", "one")
	c.pod("w0", "two")
	l := c.reconciler()
	c.ask("m0", "drain-rendered-master-1")
	c.ask("w0", "drain-rendered-worker-1")
	c.writes(0, 0, 2, func() { l.CheckResult(l.once(), patch.InForce, "AsExpected") })
	c.NoError(c.is("m0", "drain-rendered-master-1", false))
	c.NoError(c.is("w0", "drain-rendered-worker-1", false))
	l.emitted("DrainNotNeeded", "nothing is drained")
	l.CheckNoWrites()

	// The next config comes before the node has restarted.
	c.ask("w0", "drain-rendered-worker-2")
	l.once()
	c.NoError(c.is("w0", "drain-rendered-worker-2", false))

	c.ask("m0", "uncordon-rendered-master-1")
	c.writes(0, 0, 1, func() { l.once() })
	c.NoError(c.is("m0", "uncordon-rendered-master-1", false))
	l.CheckNoWrites()
}

// With any other topology everything is evicted that kubectl drain evicts, and the drain is acknowledged when it is gone.
func TestDrained(t *testing.T) {
	modes := []configv1.TopologyMode{ha, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode, configv1.ExternalTopologyMode}
	if testing.Short() {
		modes = modes[:1]
	}
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "daemon"}}
	daemons.Spec.Selector, daemons.Spec.Template = podsOf("daemon")
	ownedBy := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: "1", Controller: ptr.To(true)}}
		}
	}
	for _, mode := range modes {
		t.Run("topology "+string(mode), func(t *testing.T) {
			c := newCluster(t, mode, "w0", "w1")
			c.Create("test", daemons.DeepCopy())
			c.pod("w0", "unmanaged")
			c.pod("w0", "local", func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			})
			c.pod("w0", "daemon", ownedBy("daemon"))
			c.pod("w0", "orphan", ownedBy("gone"))
			c.pod("w1", "elsewhere")
			l := c.reconciler()
			c.ask("w0", "drain-rendered-worker-1")
			c.writes(3, 1, 1, func() { l.restsAs(patch.InForce, "AsExpected") })
			c.NoError(c.is("w0", "drain-rendered-worker-1", true))
			c.left("daemon", "elsewhere")
			l.emitted("DrainStarted", "evicted: 3")
			l.emitted("Drained")
			l.CheckNoWrites()

			c.ask("w0", "uncordon-rendered-worker-1")
			c.writes(0, 1, 1, func() { l.rest() })
			c.NoError(c.is("w0", "uncordon-rendered-worker-1", false))
			l.emitted("Uncordoned")
			l.CheckNoWrites()
		})
	}
}

// held is a node in a drain, with a pod whose budget permits no eviction.
func held(t *testing.T) (*reconciler, *cluster) {
	t.Helper()
	c := newCluster(t, ha, "w0")
	c.pod("w0", "held")
	c.budget("held", 0)
	l := c.reconciler()
	c.ask("w0", "drain-a")
	l.CheckResult(l.once(), patch.Progressing, "Draining")
	l.emitted("DrainStarted")
	return l, c
}

// completes reconciles until the drain of the node is acknowledged.
func (l *reconciler) completes(node, request string) {
	l.Helper()
	l.restsAs(patch.InForce, "AsExpected")
	c := &cluster{l.Cluster}
	l.NoError(c.is(node, request, true))
}

// An attempt that a budget refuses fails, is reported, and is retried with back-off. The drain is not acknowledged meanwhile.
func TestBudgetThatHolds(t *testing.T) {
	l, c := held(t)
	for _, pause := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		began := l.time.Now()
		result := l.rest()
		l.CheckResult(result, patch.Failed, "DrainFailed")
		if took := l.time.Now().Sub(began); result.After != pause*time.Second || took < DefaultDrainTimeout || took > 2*DefaultDrainTimeout {
			t.Errorf("an attempt of %s, and %s until the next", took, result.After)
		}
		c.NoError(c.is("w0", "", true))
		c.left("held")
		l.emitted("Warning DrainFailed", "is retried", "disruption budget")
		l.CheckNoWrites()
		l.pass(result.After)
	}
	l.emitted("DrainProgress", "left: 1")
	c.budget("held", 1)
	l.completes("w0", "drain-a")
	l.CheckNoWrites()
}

// With a time limit below 10 s the first pause is as long as the limit: rest goes through pauses of 2 s and 4 s, and ends before the one of 8 s.
func TestShortDrainTimeout(t *testing.T) {
	_, c := held(t)
	l := c.reconciler("--drain-timeout=2s")
	began := l.time.Now()
	result := l.rest()
	l.CheckResult(result, patch.Failed, "DrainFailed")
	if took := l.time.Now().Sub(began); result.After != 8*time.Second || took != 12*time.Second {
		t.Errorf("three attempts took %s, and %s until the next; want 12s and 8s", took, result.After)
	}
}

// A pod that terminates slowly is evicted once, and waited for.
func TestPodThatEndsSlowly(t *testing.T) {
	c := newCluster(t, ha, "w0")
	c.pod("w0", "slow", terminatesSlowly)
	l := c.reconciler()
	c.ask("w0", "drain-a")
	c.writes(1, 1, 0, func() {
		for range 10 {
			l.pass(l.once().After)
		}
	})
	c.NoError(c.is("w0", "", true))
	c.terminate("slow")
	l.completes("w0", "drain-a")
}

// Two evictions under one budget can conflict in the API server, which is no failure.
func TestEvictionsThatMeet(t *testing.T) {
	c := newCluster(t, ha, "w0")
	c.pod("w0", "one")
	c.pod("w0", "two")
	l := c.reconciler()
	attempts := 0
	l.fault = func(r *http.Request) *http.Response {
		if !strings.HasSuffix(r.URL.Path, "/one/eviction") {
			return nil
		}
		if attempts++; attempts > 2 {
			return nil
		}
		const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"the object has been modified"}`
		return &http.Response{
			StatusCode: http.StatusConflict, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)),
		}
	}
	c.ask("w0", "drain-a")
	l.completes("w0", "drain-a")
	c.left()
	if attempts != 3 {
		t.Errorf("%d attempts", attempts)
	}
}

// A pod that was placed just before the cordon is evicted too. The replacement of one that tolerates the cordon is not: the drain would never end.
func TestPodThatComes(t *testing.T) {
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		left   []string
	}{
		"late": {func(*corev1.Pod) {}, nil}, "replacement": {tolerant, []string{"next"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, ha, "w0")
			c.pod("w0", "first", test.change)
			l := c.reconciler()
			l.fault = func(r *http.Request) *http.Response {
				if strings.HasSuffix(r.URL.Path, "/first/eviction") {
					c.pod("w0", "next", test.change)
				}
				return nil
			}
			c.ask("w0", "drain-a")
			l.completes("w0", "drain-a")
			c.left(test.left...)
		})
	}
}

// Changes during a drain stop it: nothing is evicted after that.
func TestChangesInTheMiddle(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*cluster)
		request  string
		cordoned bool
	}{
		"uncordon":                    {func(c *cluster) { c.ask("w0", "uncordon-a") }, "uncordon-a", false},
		"invalid":                     {func(c *cluster) { c.ask("w0", "nonsense") }, "", true},
		"no request":                  {func(c *cluster) { c.ask("w0", "") }, "", true},
		"a control plane of one node": {func(c *cluster) { c.flip(sr) }, "drain-a", false},
		"opted out":                   {func(c *cluster) { c.annotate("oc", "w0", patch.OptOutAnnotation, "machineconfig") }, "", true},
		"a stock controller":          {func(c *cluster) { c.installStock() }, "", true},
		"another node of the name":    {func(c *cluster) { c.Delete(nodeNamed("w0")); c.addNode("w0") }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			l, c := held(t)
			test.change(c)
			l.rest()
			c.budget("held", 1)
			l.rest()
			if len(l.drains) > 0 {
				t.Errorf("a drain is in progress: %v", l.drains)
			}
			c.NoError(c.is("w0", test.request, test.cordoned))
			c.left("held")
		})
	}
	t.Run("another config", func(t *testing.T) {
		l, c := held(t)
		c.ask("w0", "drain-b")
		l.CheckResult(l.once(), patch.Progressing, "Draining")
		c.budget("held", 1)
		l.completes("w0", "drain-b")
	})
	t.Run("no node", func(t *testing.T) {
		l, c := held(t)
		c.Delete(nodeNamed("w0"))
		l.restsAs(patch.InForce, "AsExpected")
	})
}

// Another process continues the drain, although another node would be next, and the pool is paused by now.
func TestGoesOnAfterARestart(t *testing.T) {
	_, c := held(t)
	c.addNode("a0")
	c.ask("a0", "drain-a")
	c.pool("worker", `,"paused":true`)
	c.budget("held", 1)
	c.reconciler().rest()
	c.NoError(c.is("w0", "drain-a", true))
	c.NoError(c.is("a0", "", false))
}

// Invalid requests are ignored, whatever the topology, and do not affect other nodes.
func TestInvalidRequests(t *testing.T) {
	for mode, cordons := range map[configv1.TopologyMode]int{sr: 0, ha: 1} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, mode, "valid", "w0", "w1")
			for name, request := range map[string]string{"w0": "nonsense", "w1": "drain-" + strings.Repeat("x", 5000)} {
				c.pod(name, "on-"+name)
				c.ask(name, request)
			}
			c.ask("valid", "drain-w0") // the name of another node means nothing
			l := c.reconciler()
			c.writes(0, cordons, 1, func() { l.restsAs(patch.Failed, "Invalid") })
			c.NoError(c.is("w0", "", false))
			c.NoError(c.is("w1", "", false))
			c.NoError(c.is("valid", "drain-w0", mode == ha))
			l.emitted("Warning Invalid")
			l.CheckNoWrites()
		})
	}
}

// The acknowledgement of a stock controller is replaced, a person's is not, and then nothing is done.
func TestAnswerOfSomebodyElse(t *testing.T) {
	for manager, theirs := range map[string]bool{"kubectl-annotate": true, "machine-config-controller": false} {
		t.Run(manager, func(t *testing.T) {
			c := newCluster(t, ha, "w0")
			c.pod("w0", "one")
			c.annotate(manager, "w0", machineconfig.LastAppliedDrainAnnotation, "uncordon-z")
			c.ask("w0", "drain-a")
			l := c.reconciler()
			if theirs {
				l.restsAs(patch.Blocked, "FieldOwnedByOther")
				c.NoError(c.is("w0", "uncordon-z", false))
				l.CheckNoWrites()
				l = c.reconciler("--force-conflicts")
			}
			l.completes("w0", "drain-a")
		})
	}
}

// A dry run handles no requests, and neither does a single reconciliation.
func TestAnswersNobody(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{sr, ha} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, mode, "w0")
			dry, single := c.reconciler("--dry-run"), c.reconciler()
			single.patcher.Once = true
			for l, want := range map[*reconciler]patch.Result{
				dry: {State: patch.WouldChange, Reason: "DryRun"}, single: {State: patch.Waiting, Reason: "Draining"},
			} {
				l.CheckResult(l.once(), patch.InForce, "AsExpected")
				for _, request := range []string{"drain-a", "uncordon-a", "nonsense"} {
					if request == "nonsense" {
						want = patch.Result{State: patch.Failed, Reason: "Invalid"}
					}
					c.ask("w0", request)
					c.Server.NoWrites(t, suite.User(), func() { l.restsAs(want.State, want.Reason) })
				}
				c.ask("w0", "")
			}
		})
	}
}

// No more nodes are unavailable than the pool permits, also when a person cordons one, which no watch reports.
func TestNoMoreThanAllowed(t *testing.T) {
	names := []string{"w0", "w1", "w2", "w3", "w4"}
	c := newCluster(t, ha, append(names, "w5")...)
	c.pool("worker", `,"maxUnavailable":2`)
	for _, name := range names {
		c.pod(name, "on-"+name)
		c.ask(name, "drain-a")
	}
	c.cordon("w5", true)
	l := c.reconciler()
	result := l.rest()
	l.CheckResult(result, patch.Progressing, "Draining")
	if result.After != machineconfig.RecheckInterval {
		t.Errorf("the next reconciliation is after %s", result.After)
	}
	c.unavailable("w0", "w5")
	l.CheckNoWrites()

	c.cordon("w5", false)
	for i := range names {
		l.rest()
		c.unavailable(names[i:min(i+2, 5)]...)
		c.ask(names[i], "uncordon-a")
	}
	l.restsAs(patch.InForce, "AsExpected")
	l.CheckNoWrites()
}

// TestPausedPool shows R-MCO-4: in a paused pool no drain starts, nodes are uncordoned, and the status reports it.
func TestPausedPool(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{ha, sr} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, mode, "w0", "w1")
			c.pool("worker", `,"paused":true,"maxUnavailable":3`)
			c.pod("w0", "one")
			l := c.reconciler()
			c.ask("w0", "drain-a")
			c.ask("w1", "uncordon-a")
			c.cordon("w1", true)
			l.restsAs(patch.Progressing, "UpdatesPaused")
			c.NoError(c.is("w0", "", false))
			c.NoError(c.is("w1", "uncordon-a", false))
			l.CheckNoWrites()
			c.Patch("oc", poolNamed("worker"), `{"spec":{"paused":false}}`)
			l.restsAs(patch.InForce, "AsExpected")
			c.NoError(c.is("w0", "drain-a", mode == ha))
		})
	}
}

// A pool with an invalid maxUnavailable holds its nodes, and a Windows node's drain is never acknowledged. The status reports both.
func TestHeldNodes(t *testing.T) {
	c := newCluster(t, ha, "w0", "x0")
	c.pool("worker", `,"maxUnavailable":"many"`)
	c.Patch("kubelet", nodeNamed("x0"), `{"metadata":{"labels":{"kubernetes.io/os":"windows"}}}`)
	c.ask("w0", "drain-a")
	c.ask("x0", "drain-a")
	l := c.reconciler()
	if result := l.rest(); result.State != patch.Failed || !strings.Contains(result.Message, "spec.maxUnavailable") {
		t.Error(result)
	}
	c.NoError(c.is("w0", "", false))
	l.CheckNoWrites()
	c.Patch("oc", poolNamed("worker"), `{"spec":{"maxUnavailable":"50%"}}`)
	l.restsAs(patch.Failed, "Invalid")
	c.NoError(c.is("w0", "drain-a", true))
	c.NoError(c.is("x0", "", false))
	c.ask("x0", "")
	l.restsAs(patch.InForce, "AsExpected")
}

// A node whose drain was just acknowledged counts as unavailable even if the cache does not have that yet.
func TestCacheBehind(t *testing.T) {
	c := newCluster(t, sr, "w0", "w1")
	l := c.reconciler()
	c.ask("w1", "drain-a")
	l.rest()
	c.NoError(c.is("w1", "drain-a", false))
	c.ask("w0", "drain-a")
	known, err := l.Reconciler.Environment.Cluster(t.Context())
	c.NoError(err)
	f, err := l.gather(t.Context(), known)
	c.NoError(err)
	for i := range f.inputs.Nodes {
		delete(f.inputs.Nodes[i].Annotations, machineconfig.LastAppliedDrainAnnotation)
	}
	l.handleRequests(t.Context(), f)
	c.NoError(c.is("w0", "", false))
}

// Where no drain is needed, a person's cordon stays.
func TestCordonOfAPerson(t *testing.T) {
	c := newCluster(t, sr, "w0")
	c.cordon("w0", true)
	c.ask("w0", "drain-a")
	c.reconciler().rest()
	c.NoError(c.is("w0", "drain-a", true))
}

// With --drain-policy=workers a worker is drained if its pods fit on other nodes, which is not checked again during the drain.
func TestDrainPolicyForWorkers(t *testing.T) {
	for _, room := range []bool{true, false} {
		t.Run(fmt.Sprint("room ", room), func(t *testing.T) {
			c := newCluster(t, sr, "m0", "w0", "w1")
			c.pool("master", "")
			c.pool("worker", `,"maxUnavailable":2`)
			for _, name := range []string{"w0", "w1"} {
				c.PatchStatus("kubelet", nodeNamed(name), `{"status":{"allocatable":{"pods":"10"}}}`)
				c.Patch("kube-controller-manager", nodeNamed(name), `{"spec":{"taints":null}}`) // that of a new node
			}
			c.cordon("w1", !room)
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"}}
			set.Spec.Selector, set.Spec.Template = podsOf("held")
			c.Create("test", set)
			c.pod("w0", "held", terminatesSlowly, func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			})
			l := c.reconciler("--drain-policy=workers")
			c.ask("w0", "drain-a")
			c.ask("m0", "drain-a")
			result := l.once()
			c.NoError(c.is("m0", "drain-a", false))
			if !room {
				l.CheckResult(result, patch.InForce, "AsExpected")
				c.NoError(c.is("w0", "drain-a", false))
				c.left("held")
				c.terminate("held")
				return
			}
			l.CheckResult(result, patch.Progressing, "Draining")
			c.cordon("w1", true)
			for range 3 {
				l.pass(l.once().After)
			}
			c.NoError(c.is("w0", "", true))
			c.terminate("held")
			l.completes("w0", "drain-a")
			c.left()
		})
	}
}

// A client that may not evict is reported.
func TestForbidden(t *testing.T) {
	c := newCluster(t, ha, "w0")
	l := c.reconciler()
	var err error
	l.kube, err = newKube(c.Server.Config(t, "nobody"))
	c.NoError(err)
	c.ask("w0", "drain-a")
	l.CheckResult(l.once(), patch.Failed, "Forbidden")
	c.NoError(c.is("w0", "", false))
}
