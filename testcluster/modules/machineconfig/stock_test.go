// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/modules"
)

// daemon adds the annotations of a machine-config daemon.
func (c *cluster) daemon(node string) {
	c.Helper()
	c.annotate("machine-config-daemon", node, machineconfig.CurrentConfigAnnotation, "rendered-a")
	c.annotate("machine-config-daemon", node, machineconfig.DesiredConfigAnnotation, "rendered-a")
}

func (c *cluster) checkAnnotation(node, want string) error {
	c.Helper()
	if got := modules.Get[corev1.Node](c.Cluster, nodeNamed(node)).Annotations[machineconfig.TopologyAnnotation]; got != want {
		return fmt.Errorf("node %s is annotated with %q, want %q", node, got, want)
	}
	return nil
}

// Who may write only the status of a node, as other kubelets' tools do, makes the module neither release it nor restore
// values of his own.
func TestForgedRelease(t *testing.T) {
	c := newCluster(t, sr, "m0")
	c.installStock()
	c.daemon("m0")
	r := c.reconciler("--graceful-shutdown=off")
	r.CheckResult(r.reconcileOnce(), patch.InForce, "AsExpected")
	r.CheckForgeries(func() {
		c.annotate("oc", "m0", patch.OptOutAnnotation, "machineconfig")
		r.CheckResult(r.reconcileOnce(), patch.OptedOut, "OptedOut")
		c.NoError(c.checkAnnotation("m0", ""))
	}, modules.Forgery{Object: nodeNamed("m0"), Values: map[string]string{".spec.unschedulable": "true"}})
}

// With a stock machine-config operator nodes are annotated with the topology, and requests are not handled.
func TestWithStockOperator(t *testing.T) {
	c := newCluster(t, sr, "m0", "w0", "without-daemon")
	c.installStock()
	c.daemon("m0")
	c.daemon("w0")
	c.request("m0", "drain-rendered-b")
	c.request("w0", "uncordon-rendered-b")
	dry := c.reconciler("--dry-run", "--graceful-shutdown=off")
	dry.CheckResult(dry.reconcileOnce(), patch.WouldChange, "DryRun")
	c.NoError(c.checkAnnotation("m0", ""))

	r := c.reconciler("--graceful-shutdown=off")
	r.CheckResult(r.reconcileOnce(), patch.InForce, "AsExpected")
	for node, want := range map[string]string{"m0": "SingleReplica", "w0": "SingleReplica", "without-daemon": ""} {
		c.NoError(c.checkAnnotation(node, want))
	}
	c.NoError(c.checkNode("m0", "", false))
	c.NoError(c.checkNode("w0", "", false))
	r.CheckNoWrites()

	c.setTopology(ha)
	r.reconcileOnce()
	c.NoError(c.checkAnnotation("w0", "HighlyAvailable"))
	c.NoError(c.checkNode("m0", "", false))
	r.CheckNoWrites()

	// A person's value stays, and a node that is opted out is released.
	c.annotate("oc", "w0", machineconfig.TopologyAnnotation, "SingleReplica")
	c.annotate("oc", "m0", patch.OptOutAnnotation, "all")
	r.CheckResult(r.reconcileOnce(), patch.Blocked, "FieldOwnedByOther")
	c.NoError(c.checkAnnotation("w0", "SingleReplica"))
	c.NoError(c.checkAnnotation("m0", ""))
	r.CheckNoWrites()

	c.pool("master", `,"paused":true`)
	c.annotate("machine-config-controller", "m0", machineconfig.DesiredConfigAnnotation, "rendered-b")
	c.annotate("oc", "w0", machineconfig.TopologyAnnotation, "HighlyAvailable")
	result := r.reconcileOnce()
	r.CheckResult(result, patch.Progressing, "UpdatesPaused")
	if !strings.Contains(result.Message, "1 node") {
		t.Error(result.Message)
	}
	r.CheckNoWrites()
}

// wantShutdownObjects checks that both objects of the graceful shutdown exist, or neither.
func (c *cluster) wantShutdownObjects(exist bool) {
	c.Helper()
	file := modules.Find[mcfgv1.MachineConfig](c.Cluster, machineConfigObject)
	config := modules.Find[mcfgv1.KubeletConfig](c.Cluster, ownKubeletConfigObject)
	if (file != nil) != exist || (config != nil) != exist {
		c.Fatalf("MachineConfig %v, KubeletConfig %v; want them: %v", file, config, exist)
	}
}

// single returns a settled cluster with one node and a stock operator.
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

// TestGracefulShutdown shows R-MCO-3: the objects are written if the decision is stable, and deleted if they are no
// longer needed.
func TestGracefulShutdown(t *testing.T) {
	c := single(t)
	r := c.reconciler()
	result := r.reconcileOnce()
	r.CheckResult(result, patch.Progressing, "Settling")
	if result.After != decision.ShutdownDebounce {
		t.Errorf("the next reconciliation is after %s", result.After)
	}
	r.settle(decision.ShutdownDebounce - 1)
	c.wantShutdownObjects(false)
	r.settle(1)
	c.wantShutdownObjects(true)
	r.CheckResult(r.reconcileOnce(), patch.InForce, "AsExpected")
	r.CheckNoWrites()

	// A decision that is not stable changes nothing.
	c.setTopology(ha)
	r.CheckResult(r.reconcileOnce(), patch.Progressing, "Settling")
	c.setTopology(sr)
	r.CheckResult(r.reconcileOnce(), patch.InForce, "AsExpected")
	r.settle(2 * decision.ShutdownDebounce)
	c.wantShutdownObjects(true)
	c.setTopology(ha)
	dry := c.reconciler("--dry-run")
	dry.reconcileOnce()
	dry.settle(decision.ShutdownDebounce)
	dry.CheckResult(dry.reconcileOnce(), patch.WouldChange, "DryRun")
	c.wantShutdownObjects(true)
	r.reconcileOnce()
	r.settle(decision.ShutdownDebounce)
	c.wantShutdownObjects(false)
	r.CheckResult(r.reconcileOnce(), patch.InForce, "AsExpected")
	r.CheckNoWrites()
}

// settle reconciles after a time.
func (r *reconciler) settle(d time.Duration) {
	r.Helper()
	r.advance(d)
	r.reconcileOnce()
}

// A single reconciliation does not wait until the decision is stable.
func TestOnceSettlesAtOnce(t *testing.T) {
	c := single(t)
	dry, r := c.reconcilerOf(c.config(), once, "--dry-run"), c.reconcilerOf(c.config(), once)
	dry.CheckResult(dry.reconcileOnce(), patch.WouldChange, "DryRun")
	c.wantShutdownObjects(false)
	r.reconcileOnce()
	c.wantShutdownObjects(true)
	r.CheckResult(r.reconcileOnce(), patch.InForce, "AsExpected")
}
