// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"slices"
	"strings"
	"testing"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/ingress/decision"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/modules"
)

var infra = &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/infra": ""}}}

const infraJSON = `{"spec":{"nodePlacement":{"tolerations":null,
	"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/infra":"","node-role.kubernetes.io/master":null}}}}}`

func wantOwner(l *modules.Reconciler, result patch.Result, field, manager string) {
	l.Helper()
	l.CheckResult(result, patch.Blocked, "FieldOwnedByOther")
	if !strings.Contains(result.Message, field) || !strings.Contains(result.Message, `"`+manager+`"`) {
		l.Errorf("the message does not name both %s and %s: %s", field, manager, result.Message)
	}
}

// R-ING-4, R-SNO-5: a person's node placement stays, with any client, before and after the router is pinned.
func TestPersonsNodePlacement(t *testing.T) {
	patched := func(c *cluster, manager string) { c.Patch(manager, controllerObject, infraJSON) }
	applied := func(c *cluster, manager string) {
		u := controllerObject.Unstructured()
		u.Object["spec"] = map[string]any{"nodePlacement": map[string]any{
			"nodeSelector": map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/infra": ""}}, "tolerations": []any{},
		}}
		c.Apply(manager, u)
	}
	for name, test := range map[string]struct {
		manager string
		write   func(*cluster, string)
		before  bool
	}{
		"oc patch, before the controller": {"oc", patched, true},
		"oc patch":                        {"oc", patched, false},
		"kubectl edit":                    {"kubectl-edit", patched, false},
		"kubectl apply":                   {"kubectl", applied, false},
		"an installer's apply":            {"assisted-installer", applied, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, sr, sr)
			c.create("default", two)
			l := c.reconciler()
			if !test.before {
				l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
			}
			test.write(c, test.manager)
			wantOwner(l, l.Settle(), ".spec.nodePlacement", test.manager)
			c.NoError(c.Untouched(controllerObject))
			got := c.controller().Spec
			if !equality.Semantic.DeepEqual(got.NodePlacement, infra) || *got.Replicas != 2 {
				t.Errorf("%+v, want the values of the person and the operator", got)
			}
			l.CheckNoWrites()
			if test.manager == "oc" {
				c.Patch("oc", controllerObject, `{"spec":{"nodePlacement":null}}`)
				l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
				c.NoError(c.pinned(one)())
			}
		})
	}
}

// A person's placement that pins the router too stays and is in force, and the condition names what it lacks: without the
// toleration the router is Pending beside day-1 workers. Nothing of it is taken, before and after the module's own pin.
func TestPersonsPin(t *testing.T) {
	selector := map[string]string{"node-role.kubernetes.io/master": "", "kubernetes.io/os": "linux"}
	const lacks = `; .spec.nodePlacement of "oc" does not tolerate the taint node-role.kubernetes.io/master:NoSchedule: ` +
		"add that to its tolerations, or the router is Pending where the control plane has the taint, as with day-1 workers"
	for name, before := range map[string]bool{"before the controller": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, sr, sr)
			c.create("default", two)
			l := c.reconciler()
			if !before {
				l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
			}
			c.Patch("oc", controllerObject, `{"spec":{"nodePlacement":{"nodeSelector":{"matchLabels":{"node-role.kubernetes.io/master":"","kubernetes.io/os":"linux"}}}}}`)
			wanted := &operatorv1.NodePlacement{NodeSelector: &metav1.LabelSelector{MatchLabels: selector}}
			message := "The router is pinned to the control plane"
			if before {
				message += lacks
			} else {
				wanted.Tolerations = placement.Tolerations
			}
			result := l.Settle()
			l.CheckResult(result, patch.InForce, "AsExpected")
			if result.Message != message {
				t.Errorf("%s\nwant %s", result.Message, message)
			}
			c.NoError(c.spec(wanted, one)())
			l.CheckNoWrites()
			c.Patch("oc", controllerObject, optOut)
			l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
			c.NoError(c.spec(&operatorv1.NodePlacement{NodeSelector: wanted.NodeSelector}, two)())
		})
	}
}

// Who may write only the status of the IngressController makes the module neither release it nor restore values of his
// own: the API server drops his annotations.
func TestForgedRelease(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", two)
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	l.CheckForgeries(func() {
		c.SetTopology(ha, ha)
		l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	}, modules.Forgery{Object: controllerObject, Values: map[string]string{".spec.replicas": "7"}, Ignored: true})
	c.NoError(c.released(two)())
}

// A person's number of routers stays, and the router is pinned. The condition names the field manager and is no
// failure.
func TestPersonsReplicas(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", one)
	c.Patch("oc", controllerObject, `{"spec":{"replicas":3}}`)
	p := c.Start()
	c.Eventually("it is pinned, with the person's replicas", c.pinned(three))
	c.Eventually("the field manager is named", c.inForce("False", "FieldOwnedByOther", ".spec.replicas", `"oc"`))
	c.NoError(c.HasCondition(controllerObject, "IngressTopologyPatchFailing", "False", "AsExpected")())
	c.Eventually("the metric is set", p.HasMetric(1, "sno_blocked", `module="ingress"`, `reason="FieldOwnedByOther"`))
	p.CheckNoWrites(2)
	p.Stop()

	// An equal number is owned by both.
	l := c.reconciler()
	c.Patch("oc", controllerObject, `{"spec":{"replicas":1}}`)
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	c.Patch("kubectl-edit", controllerObject, `{"spec":{"replicas":3}}`)
	wantOwner(l, l.Settle(), ".spec.replicas", "kubectl-edit")
	c.NoError(c.pinned(three)())
	c.SetTopology(ha, ha)
	l.CheckResult(l.Settle(), patch.NotNeeded, "NotNeeded")
	c.NoError(c.released(three)())
}

// --force-conflicts takes both fields. Opting out restores values and owners.
func TestForceConflicts(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", nil)
	c.Patch("oc", controllerObject, `{"spec":{"replicas":3}}`)
	c.Patch("kubectl-edit", controllerObject, infraJSON)
	l := c.reconciler("--force-conflicts")
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	c.NoError(c.pinned(one)())
	l.CheckNoWrites()

	c.Patch("oc", controllerObject, optOut)
	l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
	c.NoError(c.spec(infra, three)())
	c.NoError(c.Untouched(controllerObject))
	for field, want := range map[string]string{decision.FieldReplicas: "oc", ".spec.nodePlacement.nodeSelector": "kubectl-edit"} {
		if got, err := ownership.Managers(c.controller(), field); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s is owned by %v, want %s (%v)", field, got, want, err)
		}
	}
	l.CheckNoWrites()
}

func TestDryRun(t *testing.T) {
	c := newCluster(t, sr, sr)
	c.create("default", two)
	l := c.reconciler("--dry-run")
	requests := c.Server.WritesDuring(c, suite.User(), func() { l.CheckResult(l.Reconcile(), patch.WouldChange, "DryRun") })
	if len(requests) == 0 {
		t.Error("no dry-run request was sent")
	}
	for _, request := range requests {
		if !strings.Contains(request.URI, "dryRun=All") {
			t.Errorf("a write in a dry run: %s", request)
		}
	}
	for _, text := range []string{
		`"Field changed"`, `"field"=".spec.nodePlacement.nodeSelector.matchLabels.node-role.kubernetes.io/master"`,
		`"field"=".spec.replicas" "live"="2" "desired"="1" "owner"="cluster-ingress-operator"`,
	} {
		if logged := strings.Join(l.Logged, "\n"); !strings.Contains(logged, text) {
			t.Errorf("the log lacks %s:\n%s", text, logged)
		}
	}
}
