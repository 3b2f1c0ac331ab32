package controller

import (
	"testing"

	"github.com/solonode/sno/patch/manager"
)

// Whatever the flags say: what others wrote into the overrides is theirs, also where it is written between a look and the write
// that follows it, when only the API server notices.
func TestLookNeverForcesTheOverride(t *testing.T) {
	for _, force := range []bool{false, true} {
		p, err := (&Module{override: "auto"}).patcher(manager.Environment{Options: manager.Options{ForceConflicts: force}})
		if err != nil {
			t.Fatal(err)
		}
		if p.authentication.ForceConflicts || p.deployments.ForceConflicts != force || p.forceConflicts != force {
			t.Errorf("--force-conflicts=%t: authentication %t, deployments %t, decision %t", force,
				p.authentication.ForceConflicts, p.deployments.ForceConflicts, p.forceConflicts)
		}
	}
	if _, err := (&Module{override: "sometimes"}).patcher(manager.Environment{}); err == nil {
		t.Error("a policy that is none is accepted")
	}
}

// Of the nodes, only those of the control plane are read: a cluster with thousands of workers costs no more than a small one.
func TestReadsOnlyControlPlaneNodes(t *testing.T) {
	found := false
	for _, o := range (&Module{}).Objects() {
		if o.Kind == "Node" {
			found = true
			if o.Labels != "node-role.kubernetes.io/master" {
				t.Errorf("nodes are selected by %q", o.Labels)
			}
		} else if o.Name == "" {
			t.Errorf("all objects of kind %s are read", o.Kind)
		}
	}
	if !found {
		t.Error("no nodes are read")
	}
}
