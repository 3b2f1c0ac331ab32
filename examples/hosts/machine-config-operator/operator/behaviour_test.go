// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var atRest = map[string]string{
	"NodeControllerProgressing": "False AsExpected", "NodeControllerDegraded": "False AsExpected",
	"DrainControllerProgressing": "False AsExpected", "DrainControllerDegraded": "False AsExpected",
	"KubeletShutdownProgressing": "False NotNeeded",
}

// A node of a highly available control plane is drained, one of a single node is not.
func TestDrainsByTopology(t *testing.T) {
	s := newSite(t, ha, "m0", "m1", "m2", "w0")
	s.addPod("p", "w0")
	s.start()
	s.expect("controlPlaneTopology", map[string]string{"m0": "HighlyAvailable", "w0": "HighlyAvailable p"})
	s.expectConditions(atRest)
	s.silent()

	s.request("w0", "drain-one")
	s.expectApplied(map[string]string{"w0": "drain-one cordoned"})
	s.request("w0", "uncordon-one")
	s.expectApplied(map[string]string{"w0": "uncordon-one"})
	s.expectConditions(atRest)
	s.silent()

	s.topology(sr)
	s.expect("controlPlaneTopology", map[string]string{"m0": "SingleReplica", "w0": "SingleReplica"})
	s.addPod("p", "w0")
	for _, name := range []string{"m0", "w0"} {
		s.request(name, "drain-two")
	}
	s.expectApplied(map[string]string{"m0": "drain-two", "w0": "drain-two p"})
	s.silent()

	// An invalid request is never acknowledged.
	s.request("w0", "reboot-three")
	s.expectConditions(map[string]string{"DrainControllerDegraded": "True Error"})
	s.settle()
	s.expectApplied(map[string]string{"w0": "drain-two p"})
	s.request("w0", "uncordon-three")
	s.expectApplied(map[string]string{"w0": "uncordon-three p"})
	s.expectConditions(atRest)
}

// As many nodes are drained at once as maxUnavailable permits, and the control plane keeps its majority.
func TestDrainsInTurn(t *testing.T) {
	s := newSite(t, ha, "m0", "m1", "m2", "w0", "w1", "w2")
	s.addPool("master", "", intstr.FromInt32(3), false)
	s.addPool("worker", "", intstr.FromInt32(2), false)
	s.start()
	s.expectConditions(atRest)
	for _, name := range []string{"m0", "m1", "m2", "w0", "w1", "w2"} {
		s.request(name, "drain-one")
	}
	s.expectApplied(map[string]string{"m0": "drain-one cordoned", "m1": "", "m2": "", "w0": "drain-one cordoned", "w1": "drain-one cordoned", "w2": ""})
	s.expectConditions(map[string]string{"DrainControllerProgressing": "True Draining"})
	s.silent()
	s.request("m0", "uncordon-one")
	s.request("w1", "uncordon-one")
	s.expectApplied(map[string]string{"m0": "uncordon-one", "m1": "drain-one cordoned", "m2": "", "w1": "uncordon-one", "w2": "drain-one cordoned"})
}

// A refused eviction is retried, and a drain continues in another process.
func TestDrainThatWaits(t *testing.T) {
	s := newSite(t, dual, "m0", "m1")
	s.addPod("p", "m0")
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	budget.Spec.MaxUnavailable, budget.Spec.Selector = new(intstr.IntOrString), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	s.create(budget)
	budget.Status.ObservedGeneration = budget.Generation // as the disruption controller does
	if err := s.admin.Status().Update(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := s.admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	stop := s.start()
	s.request("m0", "drain-one")
	s.expectConditions(map[string]string{"DrainControllerDegraded": "True Error", "DrainControllerProgressing": "True Draining"})
	s.expectApplied(map[string]string{"m0": "cordoned p"})
	stop()
	s.request("m1", "drain-one")
	s.start()
	s.delete(budget)
	s.expectApplied(map[string]string{"m0": "drain-one cordoned", "m1": ""})

	// The other node may be drained after the first one has returned.
	s.request("m0", "uncordon-one")
	s.expectApplied(map[string]string{"m0": "uncordon-one", "m1": "drain-one cordoned"})
}

// With the policy workers, a worker whose pods fit elsewhere is drained, the control-plane node is not.
func TestPolicyWorkers(t *testing.T) {
	s := newSite(t, sr, "m0", "w0")
	s.start(func(o *Options) { o.DrainPolicy = "workers" })
	s.request("w0", "drain-one")
	s.expectApplied(map[string]string{"w0": "drain-one cordoned"})
	s.request("m0", "drain-one")
	s.expectApplied(map[string]string{"m0": "drain-one"})
}

// Configurations are assigned in turn: not more than maxUnavailable, arbiters after masters, none of a paused pool.
func TestConfigurationsInTurn(t *testing.T) {
	s := newSite(t, "HighlyAvailableArbiter", "a0", "m0", "m1", "w0")
	s.addPool("master", "new", intstr.FromInt32(1), false)
	s.addPool("arbiter", "new", intstr.FromInt32(1), false)
	s.addPool("worker", "new", intstr.FromInt32(1), true)
	s.start()
	desired := func(a0, m0, m1, w0 string) {
		t.Helper()
		s.expect("desiredConfig", map[string]string{"a0": a0, "m0": m0, "m1": m1, "w0": w0})
		s.silent()
		s.expect("desiredConfig", map[string]string{"a0": a0, "m0": m0, "m1": m1, "w0": w0})
	}
	desired("old", "new", "old", "old")
	s.expectConditions(map[string]string{"NodeControllerProgressing": "True RollingOut"})
	s.annotate("m0", map[string]string{"currentConfig": "new"})
	desired("old", "new", "new", "old")
	s.annotate("m1", map[string]string{"currentConfig": "new"})
	desired("new", "new", "new", "old")
	s.annotate("a0", map[string]string{"currentConfig": "new"})
	s.expectConditions(map[string]string{"NodeControllerProgressing": "False UpdatesPaused", "NodeControllerDegraded": "False AsExpected"})
	change(s, &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}, func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = false })
	desired("new", "new", "new", "new")
}

// The kubelet of the only node shuts down gracefully, until there is another node.
func TestGracePeriods(t *testing.T) {
	s := newSite(t, sr, "m0")
	s.start()
	periods := func(want string) {
		t.Helper()
		s.eventually("the grace periods", func() string {
			config := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: shutdownConfig}}
			if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(config), config); client.IgnoreNotFound(err) != nil {
				return err.Error()
			}
			return cmp.Diff(want, config.Annotations[periodsAnnotation])
		})
	}
	periods("1m0s 30s")
	s.expectConditions(map[string]string{"KubeletShutdownProgressing": "False AsExpected"})
	s.silent()
	s.addNode("w0")
	periods("")
	s.expectConditions(map[string]string{"KubeletShutdownProgressing": "False NotNeeded"})
	s.silent()
	s.topology(ha)
	s.delete(node("w0"))
	s.settle()
	periods("")
}

// What is not managed is left alone.
func TestUnmanaged(t *testing.T) {
	s := newSite(t, ha, "m0")
	s.patch(machineConfiguration(), `{"spec":{"managementState":"Unmanaged"}}`)
	s.start()
	s.request("m0", "drain-one")
	s.silent()
	s.expectApplied(map[string]string{"m0": ""})
}

// The stock operator drains every node that requests it at once, with any topology, and sets no grace periods.
func TestStock(t *testing.T) {
	s := newSite(t, ha, "m0", "m1", "m2")
	s.start(func(o *Options) { o.Stock = true })
	for _, name := range []string{"m0", "m1", "m2"} {
		s.request(name, "drain-one")
	}
	s.expectApplied(map[string]string{"m0": "drain-one cordoned", "m1": "drain-one cordoned", "m2": "drain-one cordoned"})
	s.topology(sr)
	s.expect("controlPlaneTopology", map[string]string{"m0": "SingleReplica cordoned"})
	s.request("m0", "uncordon-one")
	s.expectApplied(map[string]string{"m0": "uncordon-one"})
	s.request("m0", "drain-two")
	s.expectApplied(map[string]string{"m0": "drain-two cordoned"})
	s.silent()
	live := machineConfiguration()
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil || len(live.Status.Conditions) > 0 {
		t.Errorf("conditions %v, %v", live.Status.Conditions, err)
	}
}

// Objects of others are not written.
func TestWritesOnlyItsOwn(t *testing.T) {
	own := []string{"/api/v1/nodes/", "/eviction", "/machineconfigurations/cluster/status", "/machineconfigs"}
	for _, write := range shared.Server(t).Writes(t, user) {
		if !slices.ContainsFunc(own, func(part string) bool { return strings.Contains(write.URI, part) }) {
			t.Errorf("unexpected: %s", write)
		}
	}
}
