// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/operand"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/testcluster/modules"
)

// stockSpec sets the authentication operator's shape of oauth-openshift on one node (U-AUTH-1).
func stockSpec(d *appsv1.Deployment) {
	d.Spec.Replicas = ptr.To[int32](1)
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(1)),
	}}
	d.Spec.Template.Labels[d.Name+"-anti-affinity"] = "true"
	d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/master": ""}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{d.Name + "-anti-affinity": "true"}}, TopologyKey: corev1.LabelHostname,
		}},
	}}
}

func (c *cluster) stockWrites() {
	c.Helper()
	for _, o := range deployments {
		d := c.deployment(o)
		stockSpec(d)
		c.Update("authentication-operator", d)
	}
}

func (c *cluster) specs() (out []appsv1.DeploymentSpec) {
	c.Helper()
	for _, o := range deployments {
		out = append(out, c.deployment(o).Spec)
	}
	return out
}

func (c *cluster) released(before []appsv1.DeploymentSpec) func() error {
	return func() error {
		c.Helper()
		if diff := cmp.Diff(before, c.specs()); diff != "" {
			return fmt.Errorf("the Deployments are not restored (-want +got):\n%s", diff)
		}
		for _, o := range deployments {
			for _, field := range []string{operand.FieldMaxSurge, operand.FieldRequiredAntiAffinity} {
				if got, err := ownership.Managers(c.deployment(o), field); err != nil || fmt.Sprint(got) != "[authentication-operator]" {
					return fmt.Errorf("%s of %s is owned by %v, %w", field, o.Name, got, err)
				}
			}
		}
		return c.ownsNothing()
	}
}

// Nothing is written where a stock operator owns the shape. Its stuck rollout is reported.
func TestStockOperatorOwnsTheDeployments(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	c.stockWrites()
	status := func(status corev1.ConditionStatus, reason string) {
		t.Helper()
		c.PatchStatus("kube-controller-manager", apiServerObject, `{"status":{"observedGeneration":%d,"replicas":2,"updatedReplicas":1,"readyReplicas":1,
			"availableReplicas":1,"unavailableReplicas":1,"conditions":[{"type":"Progressing","status":%q,"reason":%q}]}}`,
			c.deployment(apiServerObject).Generation, status, reason)
	}
	l := c.Reconciler()
	c.Server.NoWrites(t, suite.User(), func() {
		status("True", "ReplicaSetUpdated")
		l.CheckResult(l.Reconcile(), patch.Blocked, "FieldOwnedByOther", `"authentication-operator"`, "--force-conflicts",
			".spec.strategy.rollingUpdate.maxUnavailable of the Deployment openshift-authentication/oauth-openshift")
		status("False", "ProgressDeadlineExceeded")
		l.CheckResult(l.Reconcile(), patch.Failed, "RolloutStuck", "Deployment openshift-oauth-apiserver/apiserver", "delete the old one")
		status("True", "NewReplicaSetAvailable")
		l.CheckResult(l.Reconcile(), patch.Blocked, "FieldOwnedByOther")
	})
}

// When a stock operator writes its fields, the module releases all of them.
func TestStockOperatorReverts(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	for range 3 {
		c.stockWrites()
		l.CheckResult(l.Settle(), patch.Blocked, "FieldOwnedByOther")
		l.CheckNoWrites()
	}
	c.Check(c.ownsNothing)
	d := c.deployment(serverObject)
	if d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 1 || d.Spec.Template.Spec.Affinity == nil {
		t.Errorf("it does not have the operator's shape: %+v", d.Spec)
	}
}

// Fields that were applied by no client have no owner. The creator of a Deployment owns its defaults.
func TestShapeWithoutOwner(t *testing.T) {
	for name, write := range map[string]func(*cluster){
		"applied with, and then without": func(c *cluster) {
			c.Apply("gitops", withReplicas(serverObject, 3), withReplicas(apiServerObject, 3))
			c.Apply("gitops", deploymentOf(serverObject), deploymentOf(apiServerObject))
		},
		"with an equal number": func(c *cluster) { c.Apply("gitops", withReplicas(serverObject, 1), withReplicas(apiServerObject, 1)) },
		"created": func(c *cluster) {
			c.Delete(serverObject)
			c.Create("oc", deploymentOf(serverObject)) // the defaults have the right effect
		},
		"created with two": func(c *cluster) {
			c.Delete(serverObject)
			c.Create("oc", withReplicas(serverObject, 2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, sr, needsNot, 1)
			write(c)
			l := c.reconciler()
			if name == "created with two" {
				l.CheckResult(l.Settle(), patch.Blocked, "FieldOwnedByOther", `is owned by "oc"`)
				c.Check(c.shaped(apiServerObject, 1, 1, 0, true))
			} else {
				l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
				c.Check(c.onOne)
			}
			l.CheckNoWrites()
		})
	}
}

// --force-conflicts takes the Deployments, and a release restores values and owners. An opt-out is for one object.
func TestForceAndOptOut(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.stockWrites()
	before := c.specs()
	l := c.reconciler("--force-conflicts")
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	c.Check(c.onOne, c.overridesAre(set))
	l.CheckNoWrites()

	c.Patch("oc", authenticationObject, optOut)
	l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
	c.Check(c.onOne, c.overridesAre("absent"))
	l.CheckNoWrites()
	for _, o := range deployments {
		c.Patch("oc", o, optOut)
	}
	l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
	c.Check(c.released(before))
	l.CheckNoWrites()
}

// Who may write only the status of a Deployment makes the module neither release it nor restore values of his own.
func TestForgedRelease(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.stockWrites()
	l := c.reconciler("--force-conflicts")
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	forged := map[string]string{operand.FieldMaxSurge: `"77%"`, ".spec.template.spec.priorityClassName": `"system-node-critical"`}
	l.CheckForgeries(func() {
		c.flip(ha)
		l.Settle()
		for _, o := range deployments {
			c.Patch("oc", o, optOut)
		}
		l.CheckResult(l.Settle(), patch.OptedOut, "OptedOut")
	}, modules.Forgery{Object: serverObject, Values: forged}, modules.Forgery{Object: apiServerObject, Values: forged},
		modules.Forgery{Object: authenticationObject, Values: map[string]string{".spec.logLevel": `"TraceAll"`}, Ignored: true})
}

// Only in the first rollout the old pod, whose anti-affinity blocks the new one, may be deleted first.
func TestOldPodsUnblockRolloutOnce(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	c.stockWrites()
	c.rollOut()
	l := c.Reconciler("--force-conflicts")
	l.CheckResult(l.Reconcile(), patch.Progressing, "RollingOut")
	c.Check(c.shaped(serverObject, 1, 1, 1, false))
	l.CheckNoWrites()
	c.rollOut()
	l.CheckResult(l.Reconcile(), patch.Progressing, "RollingOut")
	c.Check(c.shaped(serverObject, 1, 0, 1, false))
	l.OtherClients = append(l.OtherClients, c.rollOut)
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	l.CheckNoWrites()
}

// The replicas follow the nodes on HighlyAvailable only. Without nodes nothing is written.
func TestReplicasFollowTheNodes(t *testing.T) {
	c := install(t, ha, needsNot, 0)
	l := c.reconciler()
	c.Server.NoWrites(t, suite.User(), func() { l.CheckResult(l.Reconcile(), patch.Waiting, "WaitingForNodes") })
	replicas := func(want int32) {
		t.Helper()
		l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
		for _, o := range deployments {
			if got := *c.deployment(o).Spec.Replicas; got != want {
				t.Errorf("%s has %d replicas, want %d", o.Name, got, want)
			}
		}
		l.CheckNoWrites()
	}
	node := func(name string) controller.Object { return modules.Object("v1", "Node", "", name) }
	c.flip(sr)
	replicas(1)
	c.flip(ha)
	c.installNodes(2)
	replicas(2)
	c.installNodes(3)
	replicas(3)
	c.Patch("oc", node("master-0"), `{"spec":{"unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}]}}`)
	replicas(3)
	c.Patch("oc", node("master-1"), `{"spec":{"taints":[{"key":"example.com/reserved","effect":"NoSchedule"}]}}`)
	replicas(2)
	c.NoError(c.Admin.DeleteAllOf(t.Context(), node("").Unstructured()))
	l.CheckResult(l.Settle(), patch.Waiting, "WaitingForNodes")
	c.Check(c.shaped(serverObject, 2, 1, 2, true))
	l.CheckNoWrites()
}

// Each object is patched without the others. Without an Infrastructure nothing is applied or released.
func TestMissingObjects(t *testing.T) {
	c := install(t, sr, needs, 1)
	c.Delete(authenticationObject, serverObject, apiServerObject)
	l := c.reconciler()
	l.CheckResult(l.Settle(), patch.Waiting, "WaitingForObject")
	c.Create("cluster-version-operator", authenticationOf(managed))
	l.CheckResult(l.Settle(), patch.Waiting, "WaitingForObject", "There is no Deployment openshift-authentication/oauth-openshift")
	c.Check(c.overridesAre(set))
	c.Apply("gitops", deploymentOf(serverObject))
	l.CheckResult(l.Settle(), patch.Waiting, "WaitingForObject", "There is no Deployment openshift-oauth-apiserver/apiserver")
	c.Check(c.shaped(serverObject, 1, 0, 1, false))
	c.Apply("gitops", deploymentOf(apiServerObject))
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")

	c.Delete(clusterVersionObject)
	l.CheckResult(l.Settle(), patch.InForce, "AsExpected")
	c.Check(c.overridesAre("absent"), c.onOne)
	c.Delete(controller.Infrastructure)
	again := c.reconciler("--override=always")
	c.Server.NoWrites(t, suite.User(), func() { again.CheckResult(again.Reconcile(), patch.Waiting, "WaitingForInfrastructure") })
}

// After a crash at any write, the next process finishes the work.
func TestCrashAfterAnyWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make proof runs it")
	}
	type before = []appsv1.DeploymentSpec
	force := []string{"--force-conflicts"}
	for name, test := range map[string]struct {
		stock, settled bool // an operator owns the shape; the cluster is patched before the change
		flags          []string
		change         func(*cluster)
		overrides      string
		check          func(*cluster, before) func() error
		want           patch.State
		writes         int
	}{
		"patching": {false, false, nil, func(*cluster) {}, `{"other":1,"` + key + `":true}`,
			func(c *cluster, _ before) func() error { return c.onOne }, patch.InForce, 3},
		"to several nodes": {false, true, nil, func(c *cluster) { c.flip(ha); c.installNodes(3) }, `{"other":1}`,
			func(c *cluster, _ before) func() error { return c.onThree }, patch.InForce, 3},
		"forcing": {true, false, force, func(*cluster) {}, `{"other":1,"` + key + `":true}`,
			func(c *cluster, _ before) func() error { return c.onOne }, patch.InForce, 3},
		"releasing what was forced": {true, true, force, func(c *cluster) {
			for _, o := range []controller.Object{serverObject, apiServerObject, authenticationObject} {
				c.Patch("oc", o, optOut)
			}
		}, `{"other":1}`, (*cluster).released, patch.OptedOut, 5},
	} {
		t.Run(name, func(t *testing.T) {
			modules.CrashAtEveryWrite(t, test.writes, func(t *testing.T, crash func(*modules.Reconciler)) bool {
				c := install(t, sr, needs, 1)
				defer c.Clear()
				c.editOverrides("oc", `{"other":1}`)
				if test.stock {
					c.stockWrites()
				}
				before := c.specs()
				if test.settled {
					c.reconciler(test.flags...).Settle()
				}
				test.change(c)
				first := c.Reconciler(test.flags...)
				crash(first)
				crashed := first.UntilCrash()
				second := c.reconciler(test.flags...)
				if result := second.Settle(); result.State != test.want {
					t.Errorf("%v, want %s", result, test.want)
				}
				c.Check(c.overridesAre(test.overrides), test.check(c, before))
				second.CheckNoWrites()
				return crashed
			})
		})
	}
}
