// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	standalone "github.com/solonode/sno/machineconfig/controller"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
)

// wantWrites checks the number of evictions, cordons and acknowledgements, and that there are no other writes.
func (c *cluster) wantWrites(evictions, cordons, acknowledgements int, during func()) {
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

// TestSingleReplicaIsNotDrained shows R-MCO-2: a drain is acknowledged at once, without a cordon or an eviction.
func TestSingleReplicaIsNotDrained(t *testing.T) {
	c := newCluster(t, sr, "m0", "w0")
	c.pod("m0", "one")
	c.pod("w0", "two")
	l := c.reconciler()
	c.request("m0", "drain-rendered-master-1")
	c.request("w0", "drain-rendered-worker-1")
	c.wantWrites(0, 0, 2, func() { l.CheckResult(l.reconcileOnce(), patch.InForce, "AsExpected") })
	c.NoError(c.checkNode("m0", "drain-rendered-master-1", false))
	c.NoError(c.checkNode("w0", "drain-rendered-worker-1", false))
	l.wantEvent("DrainNotNeeded", "nothing is drained")
	l.CheckNoWrites()

	// The next config is requested before the node has restarted.
	c.request("w0", "drain-rendered-worker-2")
	l.reconcileOnce()
	c.NoError(c.checkNode("w0", "drain-rendered-worker-2", false))

	c.request("m0", "uncordon-rendered-master-1")
	c.wantWrites(0, 0, 1, func() { l.reconcileOnce() })
	c.NoError(c.checkNode("m0", "uncordon-rendered-master-1", false))
	l.CheckNoWrites()
}

// TestDrained checks that with other topologies all pods are evicted that kubectl drain evicts, before the
// acknowledgement.
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
			c.request("w0", "drain-rendered-worker-1")
			c.wantWrites(3, 1, 1, func() { l.wantIdle(patch.InForce, "AsExpected") })
			c.NoError(c.checkNode("w0", "drain-rendered-worker-1", true))
			c.wantPods("daemon", "elsewhere")
			l.wantEvent("DrainStarted", "evicted: 3")
			l.wantEvent("Drained")
			l.CheckNoWrites()

			c.request("w0", "uncordon-rendered-worker-1")
			c.wantWrites(0, 1, 1, func() { l.untilIdle() })
			c.NoError(c.checkNode("w0", "uncordon-rendered-worker-1", false))
			l.wantEvent("Uncordoned")
			l.CheckNoWrites()
		})
	}
}

// blockedDrain starts the drain of a node with a pod whose budget permits no eviction.
func blockedDrain(t *testing.T) (*reconciler, *cluster) {
	t.Helper()
	c := newCluster(t, ha, "w0")
	c.pod("w0", "held")
	c.budget("held", 0)
	l := c.reconciler()
	c.request("w0", "drain-a")
	l.CheckResult(l.reconcileOnce(), patch.Progressing, "Draining")
	l.wantEvent("DrainStarted")
	return l, c
}

func (r *reconciler) wantDrained(node, request string) {
	r.Helper()
	r.wantIdle(patch.InForce, "AsExpected")
	c := &cluster{r.Cluster}
	r.NoError(c.checkNode(node, request, true))
}

// TestBudgetRefusesEviction checks that failed attempts are reported and retried with back-off, without an
// acknowledgement.
func TestBudgetRefusesEviction(t *testing.T) {
	l, c := blockedDrain(t)
	for _, pause := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		began := l.time.Now()
		result := l.untilIdle()
		l.CheckResult(result, patch.Failed, "DrainFailed")
		if took := l.time.Now().Sub(began); result.After != pause*time.Second || took < standalone.DefaultDrainTimeout || took > 2*standalone.DefaultDrainTimeout {
			t.Errorf("an attempt of %s, and %s until the next", took, result.After)
		}
		c.NoError(c.checkNode("w0", "", true))
		c.wantPods("held")
		l.wantEvent("Warning DrainFailed", "is retried", "disruption budget")
		l.CheckNoWrites()
		l.advance(result.After)
	}
	l.wantEvent("DrainProgress", "left: 1")
	c.budget("held", 1)
	l.wantDrained("w0", "drain-a")
	l.CheckNoWrites()
}

// With a time limit below 10 s the first back-off is the limit. untilIdle ends before the third one, of 8 s.
func TestShortDrainTimeout(t *testing.T) {
	_, c := blockedDrain(t)
	l := c.reconciler("--drain-timeout=2s")
	began := l.time.Now()
	result := l.untilIdle()
	l.CheckResult(result, patch.Failed, "DrainFailed")
	if took := l.time.Now().Sub(began); result.After != 8*time.Second || took != 12*time.Second {
		t.Errorf("three attempts took %s, and %s until the next; want 12s and 8s", took, result.After)
	}
}

func TestPodTerminatesSlowly(t *testing.T) {
	c := newCluster(t, ha, "w0")
	c.pod("w0", "slow", withFinalizer)
	l := c.reconciler()
	c.request("w0", "drain-a")
	c.wantWrites(1, 1, 0, func() {
		for range 10 {
			l.advance(l.reconcileOnce().After)
		}
	})
	c.NoError(c.checkNode("w0", "", true))
	c.terminate("slow")
	l.wantDrained("w0", "drain-a")
}

// Two evictions under one budget can conflict, which does not fail the attempt.
func TestConflictingEvictions(t *testing.T) {
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
	c.request("w0", "drain-a")
	l.wantDrained("w0", "drain-a")
	c.wantPods()
	if attempts != 3 {
		t.Errorf("%d attempts", attempts)
	}
}

// TestPodPlacedDuringDrain checks that a new pod is evicted unless it tolerates the cordon.
func TestPodPlacedDuringDrain(t *testing.T) {
	tolerating := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		left   []string
	}{
		"late": {func(*corev1.Pod) {}, nil}, "replacement": {tolerating, []string{"next"}},
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
			c.request("w0", "drain-a")
			l.wantDrained("w0", "drain-a")
			c.wantPods(test.left...)
		})
	}
}

// TestChangesDuringDrain checks that after a change no pod is evicted.
func TestChangesDuringDrain(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*cluster)
		request  string
		cordoned bool
	}{
		"uncordon":                    {func(c *cluster) { c.request("w0", "uncordon-a") }, "uncordon-a", false},
		"invalid":                     {func(c *cluster) { c.request("w0", "nonsense") }, "", true},
		"no request":                  {func(c *cluster) { c.request("w0", "") }, "", true},
		"a control plane of one node": {func(c *cluster) { c.setTopology(sr) }, "drain-a", false},
		"opted out":                   {func(c *cluster) { c.annotate("oc", "w0", patch.OptOutAnnotation, "machineconfig") }, "", true},
		"a stock controller":          {func(c *cluster) { c.installStock() }, "", true},
		"another node of the name":    {func(c *cluster) { c.Delete(nodeNamed("w0")); c.addNode("w0") }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			l, c := blockedDrain(t)
			test.change(c)
			l.untilIdle()
			c.budget("held", 1)
			if result := l.untilIdle(); result.Reason == "Draining" {
				t.Errorf("a drain is in progress: %v", result)
			}
			c.NoError(c.checkNode("w0", test.request, test.cordoned))
			c.wantPods("held")
		})
	}
	t.Run("another config", func(t *testing.T) {
		l, c := blockedDrain(t)
		c.request("w0", "drain-b")
		l.CheckResult(l.reconcileOnce(), patch.Progressing, "Draining")
		c.budget("held", 1)
		l.wantDrained("w0", "drain-b")
	})
	t.Run("no node", func(t *testing.T) {
		l, c := blockedDrain(t)
		c.Delete(nodeNamed("w0"))
		l.wantIdle(patch.InForce, "AsExpected")
	})
}

// Another process continues the drain, although another node precedes it, and the pool is paused.
func TestContinuesAfterRestart(t *testing.T) {
	_, c := blockedDrain(t)
	c.addNode("a0")
	c.request("a0", "drain-a")
	c.pool("worker", `,"paused":true`)
	c.budget("held", 1)
	c.reconciler().untilIdle()
	c.NoError(c.checkNode("w0", "drain-a", true))
	c.NoError(c.checkNode("a0", "", false))
}

// Invalid requests do not affect other nodes.
func TestInvalidRequests(t *testing.T) {
	for mode, cordons := range map[configv1.TopologyMode]int{sr: 0, ha: 1} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, mode, "valid", "w0", "w1")
			for name, request := range map[string]string{"w0": "nonsense", "w1": "drain-" + strings.Repeat("x", 5000)} {
				c.pod(name, "on-"+name)
				c.request(name, request)
			}
			c.request("valid", "drain-w0") // not the node w0
			l := c.reconciler()
			c.wantWrites(0, cordons, 1, func() { l.wantIdle(patch.Failed, "Invalid") })
			c.NoError(c.checkNode("w0", "", false))
			c.NoError(c.checkNode("w1", "", false))
			c.NoError(c.checkNode("valid", "drain-w0", mode == ha))
			l.wantEvent("Warning Invalid")
			l.CheckNoWrites()
		})
	}
}

// The acknowledgement of a stock controller is overwritten. A person's is not, and the request is ignored.
func TestAcknowledgementOfOthers(t *testing.T) {
	for manager, foreign := range map[string]bool{"kubectl-annotate": true, "machine-config-controller": false} {
		t.Run(manager, func(t *testing.T) {
			c := newCluster(t, ha, "w0")
			c.pod("w0", "one")
			c.annotate(manager, "w0", machineconfig.LastAppliedDrainAnnotation, "uncordon-z")
			c.request("w0", "drain-a")
			l := c.reconciler()
			if foreign {
				l.wantIdle(patch.Blocked, "FieldOwnedByOther")
				c.NoError(c.checkNode("w0", "uncordon-z", false))
				l.CheckNoWrites()
				l = c.reconciler("--force-conflicts")
			}
			l.wantDrained("w0", "drain-a")
		})
	}
}

// Requests are not handled in a dry run or a single reconciliation.
func TestDryRunAndOnce(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{sr, ha} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, mode, "w0")
			dry, single := c.reconciler("--dry-run"), c.reconcilerOf(c.config(), once)
			for l, want := range map[*reconciler]patch.Result{
				dry: {State: patch.WouldChange, Reason: "DryRun"}, single: {State: patch.Waiting, Reason: "Draining"},
			} {
				l.CheckResult(l.reconcileOnce(), patch.InForce, "AsExpected")
				for _, request := range []string{"drain-a", "uncordon-a", "nonsense"} {
					if request == "nonsense" {
						want = patch.Result{State: patch.Failed, Reason: "Invalid"}
					}
					c.request("w0", request)
					c.Server.NoWrites(t, suite.User(), func() { l.wantIdle(want.State, want.Reason) })
				}
				c.request("w0", "")
			}
		})
	}
}

// No more nodes are unavailable than the pool permits, also if a person has cordoned one.
func TestNoMoreThanAllowed(t *testing.T) {
	names := []string{"w0", "w1", "w2", "w3", "w4"}
	c := newCluster(t, ha, append(names, "w5")...)
	c.pool("worker", `,"maxUnavailable":2`)
	for _, name := range names {
		c.pod(name, "on-"+name)
		c.request(name, "drain-a")
	}
	c.cordon("w5", true)
	l := c.reconciler()
	result := l.untilIdle()
	l.CheckResult(result, patch.Progressing, "Draining")
	if result.After != machineconfig.RecheckInterval {
		t.Errorf("the next reconciliation is after %s", result.After)
	}
	c.wantCordoned("w0", "w5")
	l.CheckNoWrites()

	c.cordon("w5", false)
	for i := range names {
		l.untilIdle()
		c.wantCordoned(names[i:min(i+2, 5)]...)
		c.request(names[i], "uncordon-a")
	}
	l.wantIdle(patch.InForce, "AsExpected")
	l.CheckNoWrites()
}

// TestPausedPool shows R-MCO-4: in a paused pool no drain starts, which is reported, and nodes are uncordoned.
func TestPausedPool(t *testing.T) {
	for _, mode := range []configv1.TopologyMode{ha, sr} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, mode, "w0", "w1")
			c.pool("worker", `,"paused":true,"maxUnavailable":3`)
			c.pod("w0", "one")
			l := c.reconciler()
			c.request("w0", "drain-a")
			c.request("w1", "uncordon-a")
			c.cordon("w1", true)
			l.wantIdle(patch.Progressing, "UpdatesPaused")
			c.NoError(c.checkNode("w0", "", false))
			c.NoError(c.checkNode("w1", "uncordon-a", false))
			l.CheckNoWrites()
			c.Patch("oc", poolNamed("worker"), `{"spec":{"paused":false}}`)
			l.wantIdle(patch.InForce, "AsExpected")
			c.NoError(c.checkNode("w0", "drain-a", mode == ha))
		})
	}
}

// The nodes of a pool with an invalid maxUnavailable wait, and a Windows node's drain is not acknowledged.
func TestPendingNodes(t *testing.T) {
	c := newCluster(t, ha, "w0", "x0")
	c.pool("worker", `,"maxUnavailable":"many"`)
	c.Patch("kubelet", nodeNamed("x0"), `{"metadata":{"labels":{"kubernetes.io/os":"windows"}}}`)
	c.request("w0", "drain-a")
	c.request("x0", "drain-a")
	l := c.reconciler()
	if result := l.untilIdle(); result.State != patch.Failed || !strings.Contains(result.Message, "spec.maxUnavailable") {
		t.Error(result)
	}
	c.NoError(c.checkNode("w0", "", false))
	l.CheckNoWrites()
	c.Patch("oc", poolNamed("worker"), `{"spec":{"maxUnavailable":"50%"}}`)
	l.wantIdle(patch.Failed, "Invalid")
	c.NoError(c.checkNode("w0", "drain-a", true))
	c.NoError(c.checkNode("x0", "", false))
	c.request("x0", "")
	l.wantIdle(patch.InForce, "AsExpected")
}

// withoutAcknowledgements lists nodes as a cache does that lacks the last writes.
type withoutAcknowledgements struct{ client.Reader }

func (w withoutAcknowledgements) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := w.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(object runtime.Object) error {
		if object.GetObjectKind().GroupVersionKind().Kind == "Node" {
			delete(object.(client.Object).GetAnnotations(), machineconfig.LastAppliedDrainAnnotation)
		}
		return nil
	})
}

// A node whose drain was acknowledged counts as unavailable even if the cache does not have it yet.
func TestStaleCache(t *testing.T) {
	c := newCluster(t, sr, "w0", "w1")
	c.request("w1", "drain-a")
	c.reconciler().untilIdle()
	c.NoError(c.checkNode("w1", "drain-a", false))
	c.request("w0", "drain-a")
	stale := c.reconcilerOf(c.config(), func(env *controller.Environment) { env.Live = withoutAcknowledgements{env.Live} })
	stale.reconcileOnce()
	c.NoError(c.checkNode("w0", "", false))
}

func TestCordonOfAPerson(t *testing.T) {
	c := newCluster(t, sr, "w0")
	c.cordon("w0", true)
	c.request("w0", "drain-a")
	c.reconciler().untilIdle()
	c.NoError(c.checkNode("w0", "drain-a", true))
}

// With --drain-policy=workers fit is checked only before the first eviction.
func TestDrainPolicyForWorkers(t *testing.T) {
	for _, room := range []bool{true, false} {
		t.Run(fmt.Sprint("room ", room), func(t *testing.T) {
			c := newCluster(t, sr, "m0", "w0", "w1")
			c.pool("master", "")
			c.pool("worker", `,"maxUnavailable":2`)
			for _, name := range []string{"w0", "w1"} {
				c.PatchStatus("kubelet", nodeNamed(name), `{"status":{"allocatable":{"pods":"10"}}}`)
				c.Patch("kube-controller-manager", nodeNamed(name), `{"spec":{"taints":null}}`) // of a new node
			}
			c.cordon("w1", !room)
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"}}
			set.Spec.Selector, set.Spec.Template = podsOf("held")
			c.Create("test", set)
			c.pod("w0", "held", withFinalizer, func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			})
			l := c.reconciler("--drain-policy=workers")
			c.request("w0", "drain-a")
			c.request("m0", "drain-a")
			result := l.reconcileOnce()
			c.NoError(c.checkNode("m0", "drain-a", false))
			if !room {
				l.CheckResult(result, patch.InForce, "AsExpected")
				c.NoError(c.checkNode("w0", "drain-a", false))
				c.wantPods("held")
				c.terminate("held")
				return
			}
			l.CheckResult(result, patch.Progressing, "Draining")
			c.cordon("w1", true)
			for range 3 {
				l.advance(l.reconcileOnce().After)
			}
			c.NoError(c.checkNode("w0", "", true))
			c.terminate("held")
			l.wantDrained("w0", "drain-a")
			c.wantPods()
		})
	}
}

func TestForbidden(t *testing.T) {
	c := newCluster(t, ha, "w0")
	l := c.reconcilerOf(c.Server.Config(t, "nobody"), nil)
	c.request("w0", "drain-a")
	l.CheckResult(l.reconcileOnce(), patch.Failed, "Forbidden")
	c.NoError(c.checkNode("w0", "", false))
}
