package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
)

// TestRevertingHost shows R-SNO-9: a host that takes the patch off whenever it sees it is not fought; the patch is
// withheld, and that is reported.
func TestRevertingHost(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(1)
	host := c.revert()
	w := c.writes(account, func() {
		p := c.start()
		c.eventually("the revert is seen", c.shows("False", "Reverted"))
		p.eventually("the metric says so", p.Counts(1, "sno_blocked", `module="ingress"`, `reason="Reverted"`))
		// However often the host writes, the answer is the same.
		p.touch(20)
		p.Stop()
	})
	if n := host(); n != 1 {
		t.Errorf("the host reverted %d times, want once", n)
	}
	if len(w.spec) != 1 {
		t.Errorf("%d writes to the IngressController, want the first only: %v", len(w.spec), w.spec)
	}
	// Patched, then reverted.
	if len(w.status) > 3 || len(w.events) > 2 || len(w.others) > 0 {
		t.Errorf("more writes than the transitions there were: %+v", w)
	}
	if err := c.spec(nil, one)(); err != nil {
		t.Errorf("the host must have its way: %v", err)
	}
	if got, err := c.condition("IngressTopologyPatchInForce"); err != nil || !strings.Contains(got.Message, "opt-out") {
		t.Errorf("the condition does not say how to end it: %q, %v", got.Message, err)
	}
	// A single revert is not yet a fault of the cluster.
	if got, err := c.condition("IngressTopologyPatchFailing"); err != nil || got.Status != operatorv1.ConditionFalse {
		t.Errorf("degraded at once: %+v, %v", got, err)
	}
}

// revert starts a host that writes the object back, as it read it but without the placement, whenever there is one. The
// returned function stops it and says how often it did.
func (c *cluster) revert() func() int {
	c.Helper()
	w, err := c.admin.Watch(c.Context(), &operatorv1.IngressControllerList{}, client.InNamespace(ingress.IngressControllerNamespace))
	if err != nil {
		c.Fatal(err)
	}
	n, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for event := range w.ResultChan() {
			ic, ok := event.Object.(*operatorv1.IngressController)
			if !ok || event.Type == watch.Deleted || ic.Spec.NodePlacement == nil {
				continue
			}
			ic.Spec.NodePlacement = nil
			if err := c.admin.Update(c.Context(), ic, client.FieldOwner(stock)); err == nil {
				n++
			}
		}
	}()
	stopped := false
	stop := func() int {
		if !stopped {
			stopped = true
			w.Stop()
			<-ended
		}
		return n
	}
	c.Cleanup(func() { stop() })
	return stop
}

// Without permission to patch the controller says so, does not hammer, and goes on once it is permitted.
func TestForbidden(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(2)
	rules := func(verbs ...string) []rbacv1.PolicyRule {
		group := []string{operatorv1.GroupName}
		return []rbacv1.PolicyRule{
			{APIGroups: group, Resources: []string{"ingresscontrollers"}, Verbs: verbs},
			{APIGroups: group, Resources: []string{"ingresscontrollers/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		}
	}
	c.narrow(rules("get", "list", "watch")...)
	p := c.start()
	c.eventually("it says that it is forbidden", c.shows("False", "Forbidden"))
	p.eventually("the metric says so", p.Counts(1, "sno_blocked", `module="ingress"`, `reason="Forbidden"`))
	if err := c.spec(nil, two)(); err != nil {
		t.Error(err)
	}
	c.narrow(rules("get", "list", "watch", "patch")...)
	c.eventually("it is pinned once that is permitted", func() error {
		p.touch(1) // RBAC takes effect a moment after it is written
		return c.pinned(one)()
	})
	c.eventually("it no longer complains", func() error {
		c.rollOut()
		return c.shows("True", "AsExpected")()
	})
	p.eventually("nor does the metric", p.Counts(0, "sno_blocked", `module="ingress"`))
	c.eventually("one warning was sent", func() error {
		if got := c.events(); got["Warning Forbidden"] != 1 {
			return fmt.Errorf("events: %v", got)
		}
		return nil
	})
}

// A host that rewrites its whole status drops our conditions. They do not come back in a race, and its own are not touched.
func TestConditionsDropped(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for conditions to come back; make proof runs it")
	}
	c := sharedCluster(t, sr, sr)
	c.installController(1)
	p := c.start()
	c.eventually("it is pinned", c.pinned(one))
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	p.touch(1)
	w := c.writes(account, func() {
		for range 5 {
			ic := c.controller()
			ic.Status.Conditions = []operatorv1.OperatorCondition{{Type: "Available", Status: operatorv1.ConditionTrue, LastTransitionTime: ic.CreationTimestamp}}
			if err := c.admin.Status().Update(t.Context(), ic, client.FieldOwner(stock)); err != nil {
				t.Fatal(err)
			}
			p.touch(1)
		}
	})
	if len(w.status) > 0 {
		t.Errorf("dropped conditions were written again within two minutes: %v", w.status)
	}
	// Something new to say is said at once, beside the host's own condition.
	c.flip(ha, ha)
	c.eventually("the conditions are there", c.shows("False", "NotNeeded"))
	if got, err := c.condition("Available"); err != nil || got.Status != operatorv1.ConditionTrue {
		t.Errorf("the host's condition: %+v, %v", got, err)
	}
}

// Nothing is there yet: neither the kinds nor the objects. The controller waits, says for what, and needs no restart.
func TestWaitsForKindsAndObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts API servers of its own; make proof runs it")
	}
	c := newCluster(t, newServer(t))
	p := c.start()
	p.Says(`"Waiting for the cluster to serve kinds" kinds="Infrastructure.config.openshift.io/v1, Ingress.config.openshift.io/v1, IngressController.operator.openshift.io/v1"`)
	p.eventually("/readyz says the same", func() error {
		code, body, err := p.Probe("/readyz?verbose")
		if err == nil && code != http.StatusInternalServerError {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	if code, body, err := p.Probe("/healthz"); err != nil || code != http.StatusOK {
		t.Errorf("/healthz while waiting: %d %s %v; a restart would not help", code, body, err)
	}
	c.installCRDs()
	p.Ready()
	p.Says(`"Cluster serves every kind"`)

	c.eventually("the IngressController is waited for", p.Counts(1, "sno_blocked", `reason="WaitingForObject"`))
	c.installController(2)
	c.eventually("the topology is waited for", c.shows("False", "WaitingForInfrastructure"))
	if err := c.spec(nil, two)(); err != nil {
		t.Errorf("nothing may change before the topology is known: %v", err)
	}
	c.installInfrastructure(sr, sr)
	c.eventually("it is pinned", c.pinned(one))
	c.eventually("that the router is on its way is told", c.shows("True", "RouterRollingOut"))

	// The API server of an old cluster, whose enumeration is not ours, may say what we do not know.
	p.touch(1)
	c.server.NoWrites(t, user(account), func() {
		infrastructure := object("config.openshift.io/v1", "Infrastructure", "", "cluster")
		c.patch(infrastructure, "installer", `{"status":{"infrastructureTopology":7}}`, "status")
		p.Says("Topology cannot be read, keeping the last one")
		p.touch(2)
	})
	if err := c.pinned(one)(); err != nil {
		t.Errorf("a failed read must not change anything: %v", err)
	}
	c.flip(sr, "Quantum")
	c.eventually("an unknown topology acts as highly available", c.released(two))
	c.eventually("it is reported", func() error {
		if err := c.shows("False", "NotNeeded")(); err != nil {
			return err
		}
		got, err := c.condition("IngressTopologyPatchInForce")
		if err == nil && !strings.Contains(got.Message, `"Quantum"`) {
			err = fmt.Errorf("message: %s", got.Message)
		}
		return err
	})
	c.patch(object("config.openshift.io/v1", "Infrastructure", "", "cluster"), "installer",
		`{"status":{"infrastructureTopology":null,"controlPlaneTopology":null,"highAvailabilityMode":"None"}}`, "status")
	c.eventually("the mode of an old prototype is understood", c.pinned(one))
}

// What the API server would not accept from the real CRD, an older or a newer one may.
func anyStatus(crd *unstructured.Unstructured) error {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, v := range versions {
		loose := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		if err := unstructured.SetNestedField(v.(map[string]any), loose, "schema", "openAPIV3Schema", "properties", "status"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}
