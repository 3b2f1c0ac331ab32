// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/modules"
)

// R-SNO-7, R-SNO-4: the router is pinned and released as the topology changes, with one event for each transition, and
// nothing is written while nothing changes.
func TestFollowsTheTopology(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", one)
	p := c.Start()
	p.Ready()
	c.Eventually("it is pinned", c.pinned(one))
	c.Eventually("it waits for the router", c.inForce("True", "RouterRollingOut"))
	managers, err := ownership.Managers(c.controller(), decision.FieldReplicas)
	if diff := cmp.Diff([]string{stock, decision.FieldOwner}, managers); err != nil || diff != "" {
		t.Errorf("an equal value must be owned together: %v (-want +got):\n%s", err, diff)
	}
	c.rollOut()
	c.Eventually("the patch is in force", c.inForce("True", "AsExpected"))
	c.Eventually("the metric is set", p.HasMetric(1, "sno_patch_in_force", `module="ingress"`, `object="ingresscontroller/default"`))
	p.CheckNoWrites(5)

	for _, step := range []struct {
		controlPlane, infrastructure configv1.TopologyMode
		check                        func() error
		condition                    func() error
		spec, status                 int
	}{
		{ha, ha, c.released(two), c.inForce("False", "NotNeeded"), 2, 1}, // one write for the number, one to release it
		{sr, sr, c.pinned(one), c.inForce("True", "AsExpected"), 1, 2},
		{external, sr, c.released(one), c.inForce("False", "ExternalControlPlane"), 2, 1},
	} {
		w := c.writes(suite.Program(), func() {
			c.SetTopology(step.controlPlane, step.infrastructure)
			c.Eventually("the topology is followed", step.check)
			c.rollOut()
			c.Eventually("the condition is published", step.condition)
		})
		if len(w.spec) != step.spec || len(w.status) > step.status || len(w.others) > 0 {
			t.Errorf("%s: %+v, want %d writes of the spec and %d of the status", step.controlPlane, w, step.spec, step.status)
		}
		p.CheckNoWrites(2)
	}
	c.Eventually("the metric is cleared", p.HasMetric(0, "sno_patch_in_force", `module="ingress"`))
	want := map[string]int{
		"Normal RouterRollingOut": 1, "Normal AsExpected": 2, "Normal NotNeeded": 1, "Normal ExternalControlPlane": 1,
	}
	c.Eventually("there is one event for each transition", func() error {
		got := c.events()
		if got["Normal RouterRollingOut"] == 2 {
			got["Normal RouterRollingOut"] = 1 // the second time the router may have rolled out before the controller reconciles
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	})
	p.Stop()
}

// After a crash the second process writes nothing, and restores what the first has replaced.
func TestRestart(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", two)
	p := c.Start()
	c.Eventually("it waits for the router", c.inForce("True", "RouterRollingOut"))
	c.rollOut()
	c.Eventually("the patch is in force", c.inForce("True", "AsExpected"))
	c.Eventually("there is an event for both transitions", func() error {
		if got := c.events(); got["Normal RouterRollingOut"]+got["Normal AsExpected"] != 2 {
			return fmt.Errorf("events: %v", got)
		}
		return nil
	})
	p.Kill()
	c.Server.NoWrites(t, suite.User(), func() {
		p = c.Start()
		p.Ready()
		p.Touch(3)
	})
	c.Patch("oc", controllerObject, optOut)
	c.Eventually("everything is released", c.released(two))
}

// R-SNO-8: nothing is pinned or released while the topology is not known.
func TestInfrastructureDeleted(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", one)
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	c.Delete(controller.Infrastructure)
	l.CheckNoWrites()
	c.NoError(c.pinned(one)())
	c.SetTopology(ha, ha)
	l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	c.NoError(c.released(two)())
}

func TestPlacementFlag(t *testing.T) {
	c := newCluster(t, sr, ha)
	c.setDefaultPlacement(configv1.DefaultPlacementControlPlane)
	c.create("default", two)
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	c.NoError(c.released(two)())

	l = c.reconciler("--placement=defaultPlacement")
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	c.NoError(c.pinned(one)())
	for _, mode := range []configv1.TopologyMode{ha, sr} {
		c.setDefaultPlacement(configv1.DefaultPlacementWorkers)
		c.SetTopology(sr, mode)
		l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	}
	c.NoError(c.released(two)())
}

// The module does not create the IngressController, and does not write one that is being deleted.
func TestIngressControllerDeleted(t *testing.T) {
	c := newCluster(t, sr, sr)
	p := c.Start()
	p.Ready()
	for _, replicas := range []*int32{two, one, two} {
		c.create("default", replicas)
		c.Eventually("it is pinned", c.pinned(one))
		c.Delete(controllerObject)
		c.Eventually("the metric counts it as missing", p.HasMetric(1, "sno_blocked", `module="ingress"`, `reason="WaitingForObject"`))
		if modules.Find[operatorv1.IngressController](c.Cluster, controllerObject) != nil {
			t.Fatal("the IngressController was created again")
		}
	}
	c.create("default", two)
	c.Eventually("it is pinned", c.pinned(one))
	c.Patch(stock, controllerObject, `{"metadata":{"finalizers":["ingresscontroller.operator.openshift.io/finalizer-ingresscontroller"]}}`)
	c.Delete(controllerObject)
	c.Eventually("it waits", c.inForce("False", "WaitingForObject"))
	w := c.writes(suite.Program(), func() {
		c.SetTopology(ha, ha)
		p.Touch(2)
	})
	if len(w.spec) > 0 {
		t.Errorf("an object in deletion was written: %v", w.spec)
	}
	c.Patch(stock, controllerObject, `{"metadata":{"finalizers":null}}`)
	p.Stop()
}
