package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// stockSpec is how the authentication operator shapes oauth-openshift on one node (U-AUTH-1).
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

// stockWrites has the operator write both Deployments as a whole, with read-modify-write.
func (c *cluster) stockWrites() {
	c.Helper()
	for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
		d := c.deployment(k)
		stockSpec(d)
		if err := c.admin.Update(c.Context(), d, client.FieldOwner("authentication-operator")); err != nil {
			c.Fatal(err)
		}
	}
}

// A stock operator owns the shape: nothing is written, and the condition says who and what.
func TestStockOperatorOwnsTheDeployments(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	c.stockWrites()
	before := c.deployment(serverKey).ResourceVersion + c.deployment(apiServerKey).ResourceVersion
	l := c.looker()
	var result patch.Result
	c.server.NoWrites(t, ourUser, func() {
		for range 3 {
			result = l.look()
		}
	})
	l.want(result, patch.Blocked, "FieldOwnedByOther")
	for _, part := range []string{".spec.strategy of the Deployment openshift-authentication/oauth-openshift", `"authentication-operator"`, "--force-conflicts"} {
		if !strings.Contains(result.Message, part) {
			t.Errorf("the message lacks %s: %s", part, result.Message)
		}
	}
	if after := c.deployment(serverKey).ResourceVersion + c.deployment(apiServerKey).ResourceVersion; after != before {
		t.Error("a Deployment was written")
	}
}

// A rollout of the stock operator that is stuck is reported while the module stands back, and is over when it has ended; nothing is written.
func TestStockRolloutStuck(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	c.stockWrites()
	status := func(progressing appsv1.DeploymentCondition, updated int32) {
		t.Helper()
		d := c.deployment(apiServerKey)
		progressing.Type = appsv1.DeploymentProgressing
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: updated, ReadyReplicas: 1, AvailableReplicas: 1,
			UnavailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{progressing}}
		if err := c.admin.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	l := c.looker()
	c.server.NoWrites(t, ourUser, func() {
		status(appsv1.DeploymentCondition{Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}, 1)
		l.want(l.look(), patch.Blocked, "FieldOwnedByOther")
		status(appsv1.DeploymentCondition{Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}, 1)
		result := l.look()
		l.want(result, patch.Failed, "RolloutStuck")
		for _, part := range []string{"Deployment openshift-oauth-apiserver/apiserver", "somebody else shapes it", "delete the old one"} {
			if !strings.Contains(result.Message, part) {
				t.Errorf("the message lacks %q: %s", part, result.Message)
			}
		}
		status(appsv1.DeploymentCondition{Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}, 1)
		l.want(l.look(), patch.Blocked, "FieldOwnedByOther")
	})
}

// An operator that comes later, or comes back, is not fought: it gets its fields, and everything else of ours goes.
func TestStockOperatorComesBack(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	l := c.looker()
	l.want(l.settle(), patch.InForce, "AsExpected")
	for range 3 {
		c.stockWrites()
		l.want(l.settle(), patch.Blocked, "FieldOwnedByOther")
		l.atRest()
	}
	c.ownsNothing()
	d := c.deployment(serverKey)
	if d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 1 || d.Spec.Template.Spec.Affinity == nil {
		t.Errorf("it is not as the operator wants it: %+v", d.Spec)
	}
}

// Nobody owns the shape where the Deployment was applied without it, or where who wrote it has left. A value of theirs that
// is equal to ours is no obstacle.
func TestNobodyOwnsTheShape(t *testing.T) {
	for name, write := range map[string]func(*cluster){
		"applied without": func(*cluster) {},
		"applied with, and then without": func(c *cluster) {
			for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
				u := deploymentOf(k)
				u.Object["spec"].(map[string]any)["replicas"] = int64(3)
				c.apply(u, "gitops")
			}
			c.installDeployments()
		},
		"with an equal number": func(c *cluster) {
			for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
				u := deploymentOf(k)
				u.Object["spec"].(map[string]any)["replicas"] = int64(1)
				c.apply(u, "gitops")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := install(t, sr, needsNot, 1)
			write(c)
			l := c.looker()
			l.want(l.settle(), patch.InForce, "AsExpected")
			c.shaped(serverKey, 1, "0", "1", false)
			c.shaped(apiServerKey, 1, "1", "0", true)
			l.atRest()
		})
	}
}

// One whose creator still owns the defaults, as with `oc create`, is somebody's.
func TestCreatedDeploymentIsItsCreators(t *testing.T) {
	c := newCluster(t, shared.Server(t))
	c.installInfrastructure(sr)
	c.installRelease(needsNot)
	c.installAuthentication(`{"managementState":"Managed"}`)
	c.installNodes(1)
	c.create(deploymentOf(serverKey), "oc")
	c.apply(deploymentOf(apiServerKey), "gitops")
	l := c.looker()
	result := l.settle()
	l.want(result, patch.Blocked, "FieldOwnedByOther")
	if !strings.Contains(result.Message, `is owned by "oc"`) {
		t.Error(result.Message)
	}
	// One that is blocked stops no other.
	c.shaped(apiServerKey, 1, "1", "0", true)
	l.atRest()
}

// Force takes the Deployments, and letting go gives everything back to whom it was taken from.
func TestForceAndGiveBack(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	c.stockWrites()
	before := map[client.ObjectKey]appsv1.DeploymentSpec{serverKey: c.deployment(serverKey).Spec, apiServerKey: c.deployment(apiServerKey).Spec}
	l := c.looker(forced)
	l.want(l.settle(), patch.InForce, "AsExpected")
	c.shaped(serverKey, 1, "0", "1", false)
	c.shaped(apiServerKey, 1, "1", "0", true)
	l.atRest()

	for k := range before {
		c.patch(object("apps/v1", "Deployment", k.Namespace, k.Name), "oc", `{"metadata":{"annotations":{"sno.solonode.github.io/opt-out":"all"}}}`)
	}
	l.want(l.settle(), patch.OptedOut, "OptedOut")
	c.ownsNothing()
	l.atRest()
	for k, spec := range before {
		d := c.deployment(k)
		if diff := cmp.Diff(spec, d.Spec); diff != "" {
			t.Errorf("%s is not as it was (-was +is):\n%s", k.Name, diff)
		}
		for _, field := range []string{".spec.strategy.rollingUpdate.maxSurge", auth.FieldRequiredAntiAffinity} {
			if got, err := ownership.Managers(d, field); err != nil || fmt.Sprint(got) != "[authentication-operator]" {
				t.Errorf("%s of %s belongs to %v, %v", field, k.Name, got, err)
			}
		}
		for name := range d.Annotations {
			if strings.HasSuffix(name, "-replaced") {
				t.Errorf("%s still has the annotation %s", k.Name, name)
			}
		}
	}
}

// On one node the old pods' anti-affinity keeps the new pod out although that has none itself, so the first rollout takes the old
// pod first. The next ones do not, and nothing is written in between.
func TestOldPodsGiveWayOnce(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	c.stockWrites()
	c.rollOut()
	l := c.looker(forced)
	l.want(l.look(), patch.Progressing, "RollingOut")
	c.shaped(serverKey, 1, "1", "1", false)
	l.atRest()
	c.rollOut()
	l.want(l.look(), patch.Progressing, "RollingOut")
	c.shaped(serverKey, 1, "0", "1", false)
	l.want(l.settle(), patch.InForce, "AsExpected")
	l.atRest()
}

// Not even with force is an operator fought that writes its own again.
func TestForceDoesNotFight(t *testing.T) {
	c := install(t, sr, needsNot, 1)
	l := c.looker(forced)
	for range 3 {
		c.stockWrites()
		result := l.look()
		if result.State == patch.Reverted {
			if result.After == 0 || !strings.Contains(result.Message, `"authentication-operator"`) {
				t.Errorf("%+v", result)
			}
			l.atRest()
			return
		}
	}
	t.Error("it is written again and again")
}

// Nodes that come, go and are cordoned change the number only in the modes that follow it.
func TestReplicasFollowTheNodes(t *testing.T) {
	c := install(t, ha, needsNot, 2)
	l := c.looker()
	replicas := func(want int32) {
		t.Helper()
		l.want(l.settle(), patch.InForce, "AsExpected")
		for _, k := range []client.ObjectKey{serverKey, apiServerKey} {
			if got := *c.deployment(k).Spec.Replicas; got != want {
				t.Errorf("%s has %d replicas, want %d", k.Name, got, want)
			}
		}
		l.atRest()
	}
	replicas(2)
	c.installNodes(3)
	replicas(3)
	c.patch(object("v1", "Node", "", "master-0"), "oc", `{"spec":{"unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}]}}`)
	replicas(3)
	c.patch(object("v1", "Node", "", "master-1"), "oc", `{"spec":{"taints":[{"key":"example.com/reserved","effect":"NoSchedule"}]}}`)
	replicas(2)
	c.flip(sr)
	replicas(1)
}
