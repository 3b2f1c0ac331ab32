package controller

import (
	"fmt"
	"strings"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/patchtest"
)

// daemon adds the annotations of a machine-config daemon.
func (c *cluster) daemon(node string) {
	c.Helper()
	c.annotate("machine-config-daemon", node, machineconfig.CurrentConfigAnnotation, "rendered-a")
	c.annotate("machine-config-daemon", node, machineconfig.DesiredConfigAnnotation, "rendered-a")
}

func (c *cluster) annotated(node, want string) error {
	c.Helper()
	if got := patchtest.Get[corev1.Node](c.Cluster, nodeNamed(node)).Annotations[machineconfig.TopologyAnnotation]; got != want {
		return fmt.Errorf("node %s is annotated with %q, want %q", node, got, want)
	}
	return nil
}

// Where a stock machine-config operator is at work, nodes are annotated with the topology, and requests are left to the operator.
func TestBesideTheStockOperator(t *testing.T) {
	c := newCluster(t, sr, "m0", "w0", "without-daemon")
	c.installStock()
	c.daemon("m0")
	c.daemon("w0")
	c.ask("m0", "drain-rendered-b")
	c.ask("w0", "uncordon-rendered-b")
	dry := c.reconciler("--dry-run", "--graceful-shutdown=off")
	dry.CheckResult(dry.once(), patch.WouldChange, "DryRun")
	c.NoError(c.annotated("m0", ""))

	l := c.reconciler("--graceful-shutdown=off")
	l.CheckResult(l.once(), patch.InForce, "AsExpected")
	for node, want := range map[string]string{"m0": "SingleReplica", "w0": "SingleReplica", "without-daemon": ""} {
		c.NoError(c.annotated(node, want))
	}
	c.NoError(c.is("m0", "", false))
	c.NoError(c.is("w0", "", false))
	l.CheckNoWrites()

	c.flip(ha)
	l.once()
	c.NoError(c.annotated("w0", "HighlyAvailable"))
	c.NoError(c.is("m0", "", false))
	l.CheckNoWrites()

	// A person's value stays, and a node that is opted out is released.
	c.annotate("oc", "w0", machineconfig.TopologyAnnotation, "SingleReplica")
	c.annotate("oc", "m0", patch.OptOutAnnotation, "all")
	l.CheckResult(l.once(), patch.Blocked, "FieldOwnedByOther")
	c.NoError(c.annotated("w0", "SingleReplica"))
	c.NoError(c.annotated("m0", ""))
	l.CheckNoWrites()

	c.pool("master", `,"paused":true`)
	c.annotate("machine-config-controller", "m0", machineconfig.DesiredConfigAnnotation, "rendered-b")
	c.annotate("oc", "w0", machineconfig.TopologyAnnotation, "HighlyAvailable")
	result := l.once()
	l.CheckResult(result, patch.Progressing, "UpdatesPaused")
	if !strings.Contains(result.Message, "1 node") {
		t.Error(result.Message)
	}
	l.CheckNoWrites()
}

// shutdown fails the test unless both objects of the graceful shutdown exist, or neither does.
func (c *cluster) shutdown(there bool) {
	c.Helper()
	file := patchtest.Find[mcfgv1.MachineConfig](c.Cluster, machineConfigObject)
	config := patchtest.Find[mcfgv1.KubeletConfig](c.Cluster, ourKubeletConfigObject)
	if (file != nil) != there || (config != nil) != there {
		c.Fatalf("MachineConfig %v, KubeletConfig %v; want them: %v", file, config, there)
	}
}

// single is a cluster of one node with a stock operator whose master pool is at rest.
func single(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, sr, "m0")
	c.installStock()
	c.daemon("m0")
	c.pod("m0", "one", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](45) })
	c.pool("master", "")
	c.PatchStatus("machine-config-controller", poolNamed("master"),
		`{"status":{"conditions":[{"type":"Updated","status":"True"},{"type":"Updating","status":"False"},{"type":"Degraded","status":"False"}]}}`)
	return c
}

// TestGracefulShutdown shows R-MCO-3: its objects are written when the decision is stable, and deleted when they are not needed any more.
func TestGracefulShutdown(t *testing.T) {
	c := single(t)
	l := c.reconciler()
	result := l.once()
	l.CheckResult(result, patch.Progressing, "Settling")
	if result.After != settleInterval {
		t.Errorf("the next reconciliation is after %s", result.After)
	}
	l.pass(machineconfig.ShutdownDebounce - 1)
	l.once()
	c.shutdown(false)
	l.pass(1)
	l.once()
	c.shutdown(true)
	l.CheckResult(l.once(), patch.InForce, "AsExpected")
	l.CheckNoWrites()

	// A decision that is not stable changes nothing.
	c.flip(ha)
	l.CheckResult(l.once(), patch.Progressing, "Settling")
	c.flip(sr)
	l.CheckResult(l.once(), patch.InForce, "AsExpected")
	l.pass(2 * machineconfig.ShutdownDebounce)
	l.once()
	c.shutdown(true)
	c.flip(ha)
	dry := c.reconciler("--dry-run")
	dry.once()
	dry.pass(machineconfig.ShutdownDebounce)
	dry.CheckResult(dry.once(), patch.WouldChange, "DryRun")
	c.shutdown(true)
	l.once()
	l.pass(machineconfig.ShutdownDebounce)
	l.once()
	c.shutdown(false)
	l.CheckResult(l.once(), patch.InForce, "AsExpected")
	l.CheckNoWrites()
}

// A single reconciliation does not wait until the decision is stable. A dry run creates nothing.
func TestOnceSettlesAtOnce(t *testing.T) {
	c := single(t)
	dry, l := c.reconciler("--dry-run"), c.reconciler()
	dry.patcher.Once, l.patcher.Once = true, true
	dry.CheckResult(dry.once(), patch.WouldChange, "DryRun")
	c.shutdown(false)
	l.once()
	c.shutdown(true)
	l.CheckResult(l.once(), patch.InForce, "AsExpected")
}
