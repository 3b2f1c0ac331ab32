package controller_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch/ownership"
)

var (
	one  = ptr.To[int32](1)
	two  = ptr.To[int32](2)
	tres = ptr.To[int32](3)
)

// TestFollowsTheTopology shows R-SNO-7 and R-SNO-4: at run time, in both directions, the router is pinned, released and
// pinned again. One event for each transition, a status write only when there is something new to report, and no write
// of any kind while nothing changes.
func TestFollowsTheTopology(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(1)
	c.createController("internal", "oc", operatorv1.IngressControllerSpec{Domain: "internal.example.com", Replicas: two})
	other := &operatorv1.IngressController{}
	otherKey := client.ObjectKey{Namespace: ingress.IngressControllerNamespace, Name: "internal"}
	if err := c.admin.Get(t.Context(), otherKey, other); err != nil {
		t.Fatal(err)
	}

	p := c.start()
	p.Ready()
	c.eventually("it is pinned", c.pinned(one))
	c.eventually("it waits for the router", c.shows("True", "RouterRollingOut"))
	managers, err := ownership.Managers(c.controller(), ingress.FieldReplicas)
	if diff := cmp.Diff([]string{stock, ingress.FieldOwner}, managers); err != nil || diff != "" {
		t.Errorf("an equal value must be owned together: %v (-want +got):\n%s", err, diff)
	}
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	c.eventually("the metric says so", p.Counts(1, "sno_patch_in_force", `module="ingress"`, `object="ingresscontroller/default"`))

	c.atRest(p, 5)

	w := c.writes(account, func() {
		c.flip(ha, ha)
		c.eventually("it is let go, with as many replicas as the operator would create", c.released(two))
		c.eventually("it is not needed", c.shows("False", "NotNeeded"))
	})
	if len(w.spec) != 2 || len(w.status) != 1 || len(w.others) > 0 {
		t.Errorf("letting go took other writes than one for the number, one to release, one to show it: %+v", w)
	}
	c.eventually("the metric says so", p.Counts(0, "sno_patch_in_force", `module="ingress"`))
	c.atRest(p, 2)

	w = c.writes(account, func() {
		c.flip(sr, sr)
		c.eventually("it is pinned again", c.pinned(one))
		c.rollOut()
		c.eventually("the patch is in force again", c.shows("True", "AsExpected"))
	})
	if len(w.spec) != 1 || len(w.others) > 0 {
		t.Errorf("pinning took other writes than one: %+v", w)
	}
	c.atRest(p, 2)

	if w := c.writes(account, func() {
		c.flip(external, sr)
		c.eventually("an external control plane is left alone", c.released(one))
		c.eventually("it says why", c.shows("False", "ExternalControlPlane"))
	}); len(w.spec) != 2 {
		t.Errorf("letting go took other writes than one for the number and one to release: %v", w.spec)
	}

	want := map[string]int{
		"Normal RouterRollingOut": 1, "Normal AsExpected": 2, "Normal NotNeeded": 1, "Normal ExternalControlPlane": 1,
	}
	c.eventually("there is one event for each transition", func() error {
		got := c.events()
		if got["Normal RouterRollingOut"] == 2 {
			got["Normal RouterRollingOut"] = 1 // the second time the router is there already, which may be seen before anything is told
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	})
	after := &operatorv1.IngressController{}
	if err := c.admin.Get(t.Context(), otherKey, after); err != nil || after.ResourceVersion != other.ResourceVersion {
		t.Errorf("another IngressController was written: %v", err)
	}
	p.Stop()
}

// atRest fails for any write request while the host writes its own status n times.
func (c *cluster) atRest(p *process, n int) {
	c.Helper()
	p.touch(1) // everything before it has been looked at
	c.server.NoWrites(c, user(account), func() { p.touch(n) })
}

// After a crash nothing is written that is there already, and no transition is told twice.
func TestRestart(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(2)
	p := c.start()
	c.eventually("it is pinned", c.pinned(one))
	c.eventually("it waits for the router", c.shows("True", "RouterRollingOut"))
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	c.eventually("both transitions are told", func() error {
		if got := c.events(); got["Normal RouterRollingOut"]+got["Normal AsExpected"] != 2 {
			return fmt.Errorf("events: %v", got)
		}
		return nil
	})
	p.Kill()
	c.server.NoWrites(t, user(account), func() {
		p = c.start()
		p.Ready()
		p.eventually("the new process has looked", func() error {
			n, err := p.Metric("controller_runtime_reconcile_total")
			if err == nil && n == 0 {
				err = fmt.Errorf("it has not")
			}
			return err
		})
		p.touch(3)
	})
	// What the first process took over is not forgotten by the second.
	c.edit("oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"ingress"}}}`)
	c.eventually("everything is given back", c.released(two))
}

// The stock operator's creation-time replicas are taken over, and given back on opting out.
func TestTakesOverAndGivesBack(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(2)
	p := c.start()
	c.eventually("it is pinned", c.pinned(one))

	c.edit("oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"ingress"}}}`)
	c.eventually("the operator's two are back", c.released(two))
	managers, err := ownership.Managers(c.controller(), ingress.FieldReplicas)
	if diff := cmp.Diff([]string{stock}, managers); err != nil || diff != "" {
		t.Errorf("owners of the replicas: %v (-want +got):\n%s", err, diff)
	}
	c.eventually("it says why", c.shows("False", "OptedOut"))
	c.atRest(p, 2)

	c.edit("oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":null}}}`)
	c.eventually("it is pinned again", c.pinned(one))

	// The operator's two fit again, so letting go gives them back too.
	c.flip(ha, ha)
	c.eventually("the operator's two are back", c.released(two))
}

// TestInfrastructureDeleted shows R-SNO-8: nothing changes while the topology is not known or can no longer be read,
// neither pinned nor released.
func TestInfrastructureDeleted(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(1)
	p := c.start()
	c.eventually("it is pinned", c.pinned(one))
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	p.touch(1)
	c.server.NoWrites(t, user(account), func() {
		if err := c.admin.Delete(t.Context(), object("config.openshift.io/v1", "Infrastructure", "", "cluster")); err != nil {
			t.Fatal(err)
		}
		p.touch(3)
	})
	if err := c.pinned(one)(); err != nil {
		t.Error(err)
	}
	c.installInfrastructure(ha, ha)
	c.eventually("the new topology is followed", c.released(two))
}

// --placement decides between two signals that disagree.
func TestPlacementFlag(t *testing.T) {
	c := sharedCluster(t, sr, ha)
	c.setDefaultPlacement(configv1.DefaultPlacementControlPlane)
	c.installController(2)
	p := c.start()
	c.eventually("the topology decides by default", c.shows("False", "NotNeeded"))
	p.Stop()

	p = c.start("--placement=defaultPlacement")
	c.eventually("the default placement decides", c.pinned(one))
	c.setDefaultPlacement(configv1.DefaultPlacementWorkers)
	c.eventually("it lets go at once, and the operator's two fit", c.released(two))
	c.flip(sr, sr)
	p.touch(2)
	if err := c.released(two)(); err != nil {
		t.Errorf("the topology must not decide: %v", err)
	}
}

// The IngressController goes away and comes back, as when somebody deletes it to have it made anew.
func TestControllerDeletedAndMadeAgain(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	p := c.start()
	p.Ready()
	for round := range 3 {
		c.installController(int32(2 - round%2))
		c.eventually("it is pinned", c.pinned(one))
		if err := c.admin.Delete(t.Context(), defaultController()); err != nil {
			t.Fatal(err)
		}
		c.eventually("the metric says that it is waited for", p.Counts(1, "sno_blocked", `module="ingress"`, `reason="WaitingForObject"`))
		if _, err := c.tryController(); client.IgnoreNotFound(err) != nil || err == nil {
			t.Fatalf("the IngressController must stay deleted: %v", err)
		}
	}
	// One that hangs in deletion is not written.
	c.createController("default", stock, operatorv1.IngressControllerSpec{Replicas: two})
	c.eventually("it is pinned", c.pinned(one))
	c.edit(stock, `{"metadata":{"finalizers":["ingresscontroller.operator.openshift.io/finalizer-ingresscontroller"]}}`)
	if err := c.admin.Delete(t.Context(), defaultController()); err != nil {
		t.Fatal(err)
	}
	c.eventually("it says that it waits", c.shows("False", "WaitingForObject"))
	w := c.writes(account, func() {
		c.flip(ha, ha)
		p.touch(2)
	})
	if len(w.spec) > 0 {
		t.Errorf("an object in deletion was written: %v", w.spec)
	}
	c.edit(stock, `{"metadata":{"finalizers":null}}`)
	p.Stop()
}
