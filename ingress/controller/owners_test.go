package controller_test

import (
	"fmt"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch/ownership"
)

var infra = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/infra": ""}}}

const infraJSON = `{"spec":{"nodePlacement":{"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/infra":"","node-role.kubernetes.io/master":null}},"tolerations":null}}}`

// apply writes as `kubectl apply --server-side` would, and takes what it wants.
func (c *cluster) apply(fieldManager string, spec map[string]any) {
	c.Helper()
	u := defaultController()
	if err := unstructured.SetNestedField(u.Object, spec, "spec"); err != nil {
		c.Fatal(err)
	}
	err := c.admin.Apply(c.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		c.Fatalf("%s applying: %v", fieldManager, err)
	}
}

// blockedBy says whether the conditions name the field and the manager, and that nothing is broken.
func (c *cluster) blockedBy(status operatorv1.ConditionStatus, field, manager string) func() error {
	return func() error {
		if err := c.shows(status, "FieldOwnedByOther")(); err != nil {
			return err
		}
		got, err := c.condition("IngressTopologyPatchInForce")
		if err != nil {
			return err
		}
		for _, part := range []string{field, fmt.Sprintf("%q", manager)} {
			if !strings.Contains(got.Message, part) {
				return fmt.Errorf("the message does not name %s: %s", part, got.Message)
			}
		}
		degraded, err := c.condition("IngressTopologyPatchFailing")
		if err == nil && degraded.Status != operatorv1.ConditionFalse {
			err = fmt.Errorf("a person's decision degrades nothing, but %+v", degraded)
		}
		return err
	}
}

// TestPersonsNodePlacement shows R-ING-4 and R-SNO-5: a person's node placement stays, whoever wrote it and however,
// before the controller starts or after it has pinned.
func TestPersonsNodePlacement(t *testing.T) {
	byUpdate := func(manager string) func(*cluster) { return func(c *cluster) { c.edit(manager, infraJSON) } }
	byApply := func(manager string) func(*cluster) {
		return func(c *cluster) {
			c.apply(manager, map[string]any{"nodePlacement": map[string]any{
				"nodeSelector": map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/infra": ""}}, "tolerations": []any{}}})
		}
	}
	for name, test := range map[string]struct {
		manager string
		write   func(*cluster)
		when    []string
	}{
		"oc patch":             {"oc", byUpdate("oc"), []string{"before", "after"}},
		"kubectl edit":         {"kubectl-edit", byUpdate("kubectl-edit"), []string{"after"}},
		"kubectl apply":        {"kubectl", byApply("kubectl"), []string{"after"}},
		"an installer's apply": {"assisted-installer", byApply("assisted-installer"), []string{"before"}},
	} {
		for _, when := range test.when {
			t.Run(name+" "+when, func(t *testing.T) {
				c := sharedCluster(t, sr, sr)
				c.installController(2)
				if when == "before" {
					test.write(c)
				}
				p := c.start()
				p.Ready()
				if when == "after" {
					c.eventually("it is pinned", c.pinned(one))
					test.write(c)
				}
				c.eventually("the person is named", c.blockedBy("False", ".spec.nodePlacement", test.manager))
				c.eventually("everything of ours is given back", c.ownsNothing)
				ic := c.controller()
				if !equal(ic.Spec.NodePlacement.NodeSelector, infra.NodeSelector) || len(ic.Spec.NodePlacement.Tolerations) > 0 || *ic.Spec.Replicas != 2 {
					t.Errorf("the IngressController is not what the person and the operator want: %+v", ic.Spec)
				}
				c.atRest(p, 2)
				p.eventually("the metric says so", p.Counts(1, "sno_blocked", `module="ingress"`, `reason="FieldOwnedByOther"`))
				if name == "oc patch" {
					c.edit("oc", `{"spec":{"nodePlacement":null}}`)
					c.eventually("with the person's placement gone it is pinned", c.pinned(one))
				}
			})
		}
	}
}

// A person's number of routers stays, and does not keep them from being pinned.
func TestPersonsReplicas(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(1)
	c.edit("oc", `{"spec":{"replicas":3}}`)
	p := c.start()
	c.eventually("it is pinned, with the person's replicas", c.pinned(tres))
	c.eventually("the person is named", c.blockedBy("False", ".spec.replicas", "oc"))
	c.rollOut()
	c.atRest(p, 2)

	// A person who asks for what the topology asks for is no obstacle.
	c.edit("oc", `{"spec":{"replicas":1}}`)
	c.eventually("the patch is in force once the router has followed", func() error {
		c.rollOut()
		return c.shows("True", "AsExpected")()
	})
	c.edit("kubectl-edit", `{"spec":{"replicas":3}}`)
	c.eventually("a new number is theirs again", c.blockedBy("False", ".spec.replicas", "kubectl-edit"))
	if err := c.pinned(tres)(); err != nil {
		t.Error(err)
	}
	c.flip(ha, ha)
	c.eventually("letting go leaves the person's number", c.released(tres))
}

// --force-conflicts takes both, and opting out gives both back to whom they were taken from.
func TestForceConflicts(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.createController("default", stock, operatorv1.IngressControllerSpec{})
	c.edit("oc", `{"spec":{"replicas":3}}`)
	c.edit("kubectl-edit", infraJSON)
	p := c.start("--force-conflicts")
	c.eventually("it is pinned", c.pinned(one))
	c.rollOut()
	c.eventually("the patch is in force", c.shows("True", "AsExpected"))
	c.atRest(p, 2)

	c.edit("oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
	c.eventually("everything is given back", func() error {
		ic := c.controller()
		if ic.Spec.NodePlacement == nil || !equal(ic.Spec.NodePlacement.NodeSelector, infra.NodeSelector) || number(ic.Spec.Replicas) != int32(3) {
			return fmt.Errorf("spec is %+v", ic.Spec)
		}
		return c.ownsNothing()
	})
	for field, want := range map[string]string{ingress.FieldReplicas: "oc", ".spec.nodePlacement.nodeSelector": "kubectl-edit"} {
		got, err := ownership.Managers(c.controller(), field)
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s went to %v, want %s (%v)", field, got, want, err)
		}
	}
	c.atRest(p, 2)
}

// A dry run asks the API server, says what it would do, and writes nothing.
func TestDryRun(t *testing.T) {
	c := sharedCluster(t, sr, sr)
	c.installController(2)
	before := c.controller()
	w := c.writes(account, func() {
		p := c.start("--dry-run")
		p.Says(`"Field changed"`)
		p.Says(`field=".spec.nodePlacement.nodeSelector.matchLabels.node-role.kubernetes.io/master"`)
		p.Says(`field=".spec.replicas" live="2" desired="1" owner="cluster-ingress-operator"`)
		p.eventually("the metric says so", p.Counts(1, "sno_blocked", `module="ingress"`, `reason="DryRun"`))
		p.touch(2)
		p.Stop()
	})
	if len(w.spec) == 0 {
		t.Error("the API server was not asked")
	}
	for _, write := range w.spec {
		if !strings.Contains(write.URI, "dryRun=All") {
			t.Errorf("a write in a dry run: %s", write)
		}
	}
	if len(w.status)+len(w.events)+len(w.others) > 0 {
		t.Errorf("writes in a dry run: %+v", w)
	}
	if after := c.controller(); !equal(after.Spec, before.Spec) || len(after.ManagedFields) != len(before.ManagedFields)+1 {
		t.Errorf("the IngressController was written: %+v, managed by %d (the host's status is one more than %d)",
			after.Spec, len(after.ManagedFields), len(before.ManagedFields))
	}
}
