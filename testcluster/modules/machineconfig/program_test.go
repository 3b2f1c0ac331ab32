// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/apiserver"
	"github.com/solonode/sno/testcluster/crds"
	"github.com/solonode/sno/testcluster/modules"
)

// TestProgram runs on plain Kubernetes until a machine-config operator is installed.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, since drains time out; make proof runs it")
	}
	c := prepare(suite.ClusterOn(t, apiserver.Start(t, apiserver.Options{CRDs: []string{crds.Infrastructures}})), sr, "w0", "w1")
	c.pod("w0", "one")
	p := c.Start("--drain-timeout=2s")
	p.WaitForLog("Working without kinds that the cluster does not serve")
	p.Ready()

	c.request("w0", "drain-a")
	c.waitForNode("w0", "drain-a", false)
	c.request("w0", "uncordon-a")
	c.waitForNode("w0", "uncordon-a", false)
	p.CheckNoWrites(3)

	// The topology changes during a drain.
	c.budget("one", 0)
	c.setTopology(ha)
	p.WaitForLog("HighlyAvailable")
	c.request("w0", "drain-b")
	c.waitForNode("w0", "uncordon-a", true)
	c.Eventually("an attempt has failed", func() error {
		n, err := p.Metric("sno_drain_tries_total", `result="failed"`)
		if err == nil && n == 0 {
			err = errors.New("none has")
		}
		return err
	})
	c.setTopology(sr)
	c.waitForNode("w0", "drain-b", false)
	c.wantPods("one")
	c.request("w0", "uncordon-b")

	c.setTopology(ha)
	c.budget("one", 1)
	p.WaitForLog("HighlyAvailable")
	c.request("w0", "drain-c")
	c.waitForNode("w0", "drain-c", true)
	c.wantPods()
	c.request("w1", "reboot-c")
	p.WaitForLog("Request is invalid")
	c.request("w1", "")
	p.CheckNoWrites(3)
	c.Eventually("there are events", func() error {
		seen := c.Events(metav1.NamespaceDefault)
		for _, want := range []string{
			"Normal DrainNotNeeded", "Normal DrainStarted", "Warning DrainFailed", "Normal Drained", "Normal Uncordoned", "Warning Invalid",
		} {
			if seen[want] == 0 {
				return fmt.Errorf("no event %s in %v", want, seen)
			}
		}
		return nil
	})

	c.InstallCRDs(stockKinds...)
	c.installStock()
	c.daemon("w0")
	p.WaitForEnd("the cluster serves kinds that it did not serve before")
	p = c.Start("--drain-timeout=2s")
	c.Eventually("the node is annotated", func() error { return c.checkAnnotation("w0", "HighlyAvailable") })
	c.request("w0", "uncordon-c")
	p.CheckNoWrites(3)
	c.NoError(c.checkNode("w0", "", true)) // the operator handles it; the topology annotation has replaced the acknowledgement
	p.Stop()
}

func TestConditions(t *testing.T) {
	c := newCluster(t, ha, "w0")
	u := operatorObject.Unstructured()
	u.Object["spec"] = map[string]any{"managementState": "Managed"}
	c.Create("machine-config-operator", u)
	c.pod("w0", "held")
	c.budget("held", 0)
	p := c.Start("--drain-timeout=1s")
	wantCondition := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		c.Eventually("it is "+reason, c.HasCondition(operatorObject, "MachineConfigTopologyPatchInForce", status, reason))
	}
	wantCondition("True", "AsExpected")
	c.request("w0", "drain-a")
	wantCondition("False", "DrainFailed")
	c.Eventually("the metric is 1", p.HasMetric(1, "sno_blocked", `reason="DrainFailed"`))
	c.budget("held", 1)
	wantCondition("True", "AsExpected")
	c.NoError(c.checkNode("w0", "drain-a", true))
	c.Patch("oc", operatorObject, `{"metadata":{"annotations":{%q:"machineconfig"}}}`, patch.OptOutAnnotation)
	wantCondition("False", "OptedOut")
	c.request("w0", "uncordon-a")
	p.CheckNoWrites(3)
	c.NoError(c.checkNode("w0", "drain-a", true))
	p.Stop()
}

func TestFlags(t *testing.T) {
	suite.TestFlags(t, map[string]modules.Invocation{
		"policies":       {Args: []string{"--help"}, Output: []string{"-drain-policy", "-drain-timeout", "-graceful-shutdown", "-shutdown-bound"}},
		"unknown policy": {Args: []string{"--drain-policy=sometimes"}, Code: 2, Output: []string{`"sometimes"`}},
		"unknown value":  {Args: []string{"--graceful-shutdown=maybe"}, Code: 2, Output: []string{`"maybe"`}},
		"low bound":      {Args: []string{"--shutdown-bound=1s"}, Code: 2, Output: []string{"1s"}},
		"short timeout":  {Args: []string{"--drain-timeout=1ms"}, Code: 2, Output: []string{"--drain-timeout=1ms"}},
		"no timeout":     {Args: []string{"--drain-timeout=-1m"}, Code: 2, Output: []string{"--drain-timeout=-1m"}},
	})
	if err := suite.Module().Validate(); err != nil { // without flags
		t.Error(err)
	}
}

func TestManifests(t *testing.T) {
	const mco = "machineconfiguration.openshift.io"
	suite.TestManifests(t, [][6]string{{"any", "", "pods", "eviction", "any", "create"}}, [][6]string{
		{"any", "", "pods", "", "any", "delete"}, {"any", "", "pods", "", "any", "get"},
		{"any", "", "pods", "", "", "watch"}, {"any", "", "pods", "", "any", "patch"},
		{"", "", "nodes", "", "any", "delete"}, {"", "", "nodes", "", "any", "update"}, {"", "", "nodes", "status", "any", "patch"},
		{"any", "apps", "daemonsets", "", "", "list"}, {"any", "", "secrets", "", "", "get"},
		{"", mco, "machineconfigs", "", "rendered-master-0", "get"}, {"", mco, "machineconfigs", "", "", "list"},
		{"", mco, "machineconfigs", "", "99-worker-ssh", "patch"}, {"", mco, "kubeletconfigs", "", "theirs", "patch"},
		{"", mco, "kubeletconfigs", "", "theirs", "delete"}, {"", mco, "machineconfigpools", "", "master", "patch"},
		{"", mco, "controllerconfigs", "", "machine-config-controller", "patch"},
		{"", "operator.openshift.io", "machineconfigurations", "", "cluster", "patch"}, {"any", "policy", "poddisruptionbudgets", "", "any", "patch"},
	})
}

// The account may change nothing of nodes but what the module patches.
func TestPolicies(t *testing.T) {
	c := newCluster(t, sr, "m1")
	c.TestPolicies(
		modules.Change{Object: nodeNamed("m1"), Patch: `{"spec":{"unschedulable":true}}`, Permissible: true},
		modules.Change{Object: nodeNamed("m1"), Patch: `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`},
		modules.Change{Object: nodeNamed("m1"), Patch: `{"metadata":{"annotations":{"machineconfiguration.openshift.io/desiredConfig":"attacker"}}}`},
	)
}
