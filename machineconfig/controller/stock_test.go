package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
)

// daemon makes a node one with a machine-config daemon.
func (c *cluster) daemon(node string) {
	c.Helper()
	c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, fmt.Sprintf(
		`{"metadata":{"annotations":{%q:"rendered-a",%q:"rendered-a"}}}`, machineconfig.CurrentConfigAnnotation, machineconfig.DesiredConfigAnnotation))
}

func (c *cluster) told(node, topology string) error {
	if got := c.node(node).Annotations[machineconfig.TopologyAnnotation]; got != topology {
		return fmt.Errorf("node %s is told %q, want %q", node, got, topology)
	}
	return nil
}

// Beside a stock machine-config operator the daemons learn the topology, and requests are left to the operator.
func TestBesideTheStockOperator(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.installStock()
	c.addNode("m0", master, worker)
	c.addNode("w0", worker)
	c.addNode("stranger", worker)
	c.daemon("m0")
	c.daemon("w0")
	c.ask("m0", "drain-rendered-b")
	c.ask("w0", "uncordon-rendered-b")
	l := c.looker("--graceful-shutdown=off")
	l.says(l.once(), patch.InForce, "AsExpected")
	for node, want := range map[string]string{"m0": "SingleReplica", "w0": "SingleReplica", "stranger": ""} {
		c.must(c.told(node, want))
	}
	c.must(c.is("m0", "", false)())
	c.must(c.is("w0", "", false)())
	l.atRest()

	c.flip(ha)
	l.once()
	c.must(c.told("w0", "HighlyAvailable"))
	c.must(c.is("m0", "", false)())
	l.atRest()

	// What a person says stays, and what they keep us away from is given back.
	c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w0"}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:"SingleReplica"}}}`, machineconfig.TopologyAnnotation))
	c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}, `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
	l.says(l.once(), patch.Blocked, "FieldOwnedByOther")
	c.must(c.told("w0", "SingleReplica"))
	c.must(c.told("m0", ""))
	l.atRest()
}

func TestStockDryRun(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.installStock()
	c.addNode("m0", master)
	c.daemon("m0")
	l := c.looker("--dry-run", "--graceful-shutdown=off")
	l.says(l.once(), patch.WouldChange, "DryRun")
	c.must(c.told("m0", ""))
}

// shutdownObjects are the objects of the graceful shutdown that there are.
func (c *cluster) shutdownObjects() []string {
	c.Helper()
	var there []string
	for _, o := range []client.Object{
		object("machineconfiguration.openshift.io/v1", "MachineConfig", machineconfig.ShutdownMachineConfigName),
		object("machineconfiguration.openshift.io/v1", "KubeletConfig", machineconfig.ShutdownName),
	} {
		err := c.admin.Get(c.Context(), client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) != nil {
			c.Fatal(err)
		}
		if !apierrors.IsNotFound(err) {
			there = append(there, o.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	return there
}

// single is a cluster of one node with a stock operator whose master pool is at rest.
func single(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, shared.Server(t), sr)
	c.installStock()
	c.addNode("m0", master, worker)
	c.daemon("m0")
	c.pod("m0", "one", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](45) })
	c.pool("master", "")
	c.patchStatus(object("machineconfiguration.openshift.io/v1", "MachineConfigPool", "master"),
		`{"status":{"conditions":[{"type":"Updated","status":"True"},{"type":"Updating","status":"False"},{"type":"Degraded","status":"False"}]}}`)
	return c
}

// TestGracefulShutdown shows R-MCO-3: its objects come when they have been wanted for a while, stay as they are, and go
// with the need.
func TestGracefulShutdown(t *testing.T) {
	c := single(t)
	both := []string{"MachineConfig", "KubeletConfig"}
	l := c.looker()
	result := l.once()
	l.says(result, patch.Progressing, "Settling")
	if result.After <= 0 {
		t.Error("nobody looks again when it has settled")
	}
	l.clock.SetTime(l.clock.Now().Add(machineconfig.ShutdownSettle - 1))
	l.once()
	if got := c.shutdownObjects(); len(got) > 0 {
		t.Errorf("%v are there too early", got)
	}
	l.clock.SetTime(l.clock.Now().Add(1))
	result = l.once()
	if got := c.shutdownObjects(); !slices.Equal(got, both) {
		t.Fatalf("%v are there: %s, %v", got, result, result.Err)
	}
	l.says(l.once(), patch.InForce, "AsExpected")
	l.atRest()

	// A need that comes and goes changes nothing.
	c.flip(ha)
	l.says(l.once(), patch.Progressing, "Settling")
	c.flip(sr)
	l.says(l.once(), patch.InForce, "AsExpected")
	l.clock.SetTime(l.clock.Now().Add(2 * machineconfig.ShutdownSettle))
	l.once()
	if got := c.shutdownObjects(); !slices.Equal(got, both) {
		t.Fatalf("%v are there", got)
	}
	c.flip(ha)
	l.once()
	l.clock.SetTime(l.clock.Now().Add(machineconfig.ShutdownSettle))
	l.once()
	if got := c.shutdownObjects(); len(got) > 0 {
		t.Errorf("%v are left", got)
	}
	l.says(l.once(), patch.InForce, "AsExpected")
	l.atRest()
}

// A KubeletConfig that somebody has for the pool wins.
func TestKubeletConfigOfSomebodyElse(t *testing.T) {
	c := single(t)
	theirs := object("machineconfiguration.openshift.io/v1", "KubeletConfig", "theirs")
	theirs.Object["spec"] = map[string]any{
		"machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{"pools.operator.machineconfiguration.openshift.io/master": ""}},
		"kubeletConfig":             map[string]any{"maxPods": int64(500)},
	}
	c.must(c.admin.Create(t.Context(), theirs))
	l := c.looker()
	l.says(l.once(), patch.Blocked, "FieldOwnedByOther")
	l.clock.SetTime(l.clock.Now().Add(2 * machineconfig.ShutdownSettle))
	l.says(l.once(), patch.Blocked, "FieldOwnedByOther")
	if got := c.shutdownObjects(); len(got) > 0 {
		t.Errorf("%v are there", got)
	}
	l.atRest()
}

// What a paused pool keeps from its nodes is said.
func TestPausedBesideTheStockOperator(t *testing.T) {
	c := newCluster(t, shared.Server(t), sr)
	c.installStock()
	c.addNode("m0", master)
	c.daemon("m0")
	c.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:"rendered-b"}}}`, machineconfig.DesiredConfigAnnotation))
	c.pool("master", `,"paused":true`)
	l := c.looker("--graceful-shutdown=off")
	result := l.once()
	l.says(result, patch.Progressing, "UpdatesPaused")
	if want := "1 node"; !strings.Contains(result.Message, want) {
		t.Errorf("%q does not say %q", result.Message, want)
	}
	l.atRest()
}
