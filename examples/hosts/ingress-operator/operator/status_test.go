// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// statuses returns the conditions of an IngressController by type: +Reason for True, -Reason for False, ?Reason for
// Unknown.
func statuses(conditions []operatorv1.OperatorCondition) map[string]string {
	sign := map[operatorv1.ConditionStatus]string{operatorv1.ConditionTrue: "+", operatorv1.ConditionFalse: "-", operatorv1.ConditionUnknown: "?"}
	got := map[string]string{}
	for _, c := range conditions {
		got[c.Type] = sign[c.Status] + c.Reason
	}
	return got
}

// router returns one with these numbers of pods, available pods and updated pods.
func router(replicas, all, updated, available int32, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	return &appsv1.Deployment{
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(intstr.FromString("25%")), MaxSurge: ptr.To(intstr.FromInt32(0)),
		}}},
		Status: appsv1.DeploymentStatus{Replicas: all, UpdatedReplicas: updated, AvailableReplicas: available, Conditions: conditions},
	}
}

var (
	serves   = appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}
	fails    = appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable", Message: "none"}
	complete = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}
)

// Conditions of the stock operator for a router, each line by the rule of one condition (status.go of the stock
// operator).
func TestConditions(t *testing.T) {
	for name, test := range map[string]struct {
		router     *appsv1.Deployment
		publishing *operatorv1.EndpointPublishingStrategy
		want       map[string]string
	}{
		"no router yet": {nil, private(), map[string]string{
			"Admitted": "+Valid", "DeploymentAvailable": "?DeploymentAvailabilityUnknown", "DeploymentReplicasMinAvailable": "-DeploymentMinimumReplicasNotMet",
			"DeploymentReplicasAllAvailable": "-DeploymentReplicasNotAvailable", "DeploymentRollingOut": "+DeploymentRollingOut",
			"LoadBalancerManaged": "-EndpointPublishingStrategyExcludesManagedLoadBalancer", "LoadBalancerProgressing": "-LoadBalancerNotProgressing",
			"Available": "-IngressControllerUnavailable", "Progressing": "+IngressControllerProgressing", "Degraded": "-",
			"Upgradeable": "+Upgradeable", "EvaluationConditionsDetected": "-NoEvaluationCondition",
		}},
		"all is well": {router(2, 2, 2, 2, serves, complete), hostNetwork(), map[string]string{
			"Admitted": "+Valid", "DeploymentAvailable": "+DeploymentAvailable", "DeploymentReplicasMinAvailable": "+DeploymentMinimumReplicasMet",
			"DeploymentReplicasAllAvailable": "+DeploymentReplicasAvailable", "DeploymentRollingOut": "-DeploymentNotRollingOut",
			"LoadBalancerManaged": "-EndpointPublishingStrategyExcludesManagedLoadBalancer", "LoadBalancerProgressing": "-LoadBalancerNotProgressing",
			"Available": "+", "Progressing": "-", "Degraded": "-", "Upgradeable": "+Upgradeable", "EvaluationConditionsDetected": "-NoEvaluationCondition",
		}},
		"a load balancer, of which nothing is here": {router(2, 2, 2, 2, serves, complete),
			&operatorv1.EndpointPublishingStrategy{Type: operatorv1.LoadBalancerServiceStrategyType}, map[string]string{
				"Admitted": "+Valid", "DeploymentAvailable": "+DeploymentAvailable", "DeploymentReplicasMinAvailable": "+DeploymentMinimumReplicasMet",
				"DeploymentReplicasAllAvailable": "+DeploymentReplicasAvailable", "DeploymentRollingOut": "-DeploymentNotRollingOut",
				"LoadBalancerProgressing": "-LoadBalancerNotProgressing",
				"Available":               "+", "Progressing": "-", "Degraded": "-", "Upgradeable": "+Upgradeable", "EvaluationConditionsDetected": "-NoEvaluationCondition",
			}},
	} {
		status, _ := desiredStatus(ingressController(nil, nil), test.publishing, test.router, metav1.Now())
		if diff := cmp.Diff(test.want, statuses(status.Conditions)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRolloutConditions(t *testing.T) {
	for name, test := range map[string]struct {
		router *appsv1.Deployment
		want   [5]string // DeploymentAvailable, ReplicasMinAvailable, ReplicasAllAvailable, RollingOut, Progressing
	}{
		"the first of two is exchanged": {router(2, 2, 1, 1, serves),
			[5]string{"+DeploymentAvailable", "+DeploymentMinimumReplicasMet", "-DeploymentReplicasNotAvailable", "+DeploymentRollingOut", "+IngressControllerProgressing"}},
		"one too many is unavailable": {router(8, 8, 5, 5, serves),
			[5]string{"+DeploymentAvailable", "-DeploymentMinimumReplicasNotMet", "-DeploymentReplicasNotAvailable", "+DeploymentRollingOut", "+IngressControllerProgressing"}},
		"an old one is left": {router(2, 3, 2, 2, serves),
			[5]string{"+DeploymentAvailable", "+DeploymentMinimumReplicasMet", "+DeploymentReplicasAvailable", "+DeploymentRollingOut", "+IngressControllerProgressing"}},
		"a node restarts": {router(2, 2, 2, 1, serves, complete),
			[5]string{"+DeploymentAvailable", "+DeploymentMinimumReplicasMet", "-DeploymentReplicasNotAvailable", "+PodsStarting", "-"}},
		"one too many after a restart": {router(2, 3, 2, 2, serves, complete),
			[5]string{"+DeploymentAvailable", "+DeploymentMinimumReplicasMet", "+DeploymentReplicasAvailable", "+ReplicasStabilizing", "-"}},
		// 25% of one is none; with a surge of none, it is one.
		"nothing serves": {router(1, 1, 1, 0, fails, complete),
			[5]string{"-DeploymentUnavailable", "+DeploymentMinimumReplicasMet", "-DeploymentReplicasNotAvailable", "+PodsStarting", "-"}},
	} {
		status, _ := desiredStatus(ingressController(nil, nil), hostNetwork(), test.router, metav1.Now())
		all := statuses(status.Conditions)
		got := [5]string{
			all["DeploymentAvailable"], all["DeploymentReplicasMinAvailable"], all["DeploymentReplicasAllAvailable"], all["DeploymentRollingOut"], all["Progressing"],
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A router may be unavailable for 30 s, below its minimum for a minute, and incomplete for an hour.
func TestDegradedAfterItsGrace(t *testing.T) {
	since := metav1.NewTime(time.Unix(10_000, 0))
	for name, test := range map[string]struct {
		router   *appsv1.Deployment
		after    time.Duration
		degraded bool
		next     time.Duration
	}{
		"serves":                     {router(1, 1, 1, 1, serves), 24 * time.Hour, false, 0},
		"unavailable, at once":       {router(1, 1, 1, 0, fails), 0, false, 30 * time.Second},
		"unavailable, just not yet":  {router(1, 1, 1, 0, fails), 29 * time.Second, false, time.Second},
		"unavailable, for too long":  {router(1, 1, 1, 0, fails), 30 * time.Second, true, time.Minute},
		"too few, just not yet":      {router(8, 8, 8, 5, serves), 59 * time.Second, false, time.Second},
		"too few, for too long":      {router(8, 8, 8, 5, serves), time.Minute, true, time.Minute},
		"not whole, just not yet":    {router(8, 8, 8, 7, serves), time.Hour - time.Second, false, time.Second},
		"not whole, for an hour now": {router(8, 8, 8, 7, serves), time.Hour, true, time.Minute},
	} {
		ic := ingressController(nil, nil)
		ic.Status, _ = desiredStatus(ic, hostNetwork(), test.router, since)
		status, next := desiredStatus(ic, hostNetwork(), test.router, metav1.NewTime(since.Add(test.after)))
		if got := statuses(status.Conditions)["Degraded"] == "+DegradedConditions"; got != test.degraded || next != test.next {
			t.Errorf("%s: degraded %v, again after %s, want %v and %s", name, got, next, test.degraded, test.next)
		}
	}
}

// The status keeps conditions of others, and the time of an unchanged status.
func TestStatusKeepsOthers(t *testing.T) {
	earlier, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	foreign := operatorv1.OperatorCondition{Type: "IngressTopologyPatchInForce", Status: operatorv1.ConditionTrue, LastTransitionTime: earlier}
	for name, test := range map[string]struct {
		live   operatorv1.ConditionStatus
		router *appsv1.Deployment
		since  metav1.Time
	}{
		"becomes available": {operatorv1.ConditionFalse, router(1, 1, 1, 1, serves), now},
		"stays available":   {operatorv1.ConditionTrue, router(1, 1, 1, 1, serves), earlier},
		"is lost":           {operatorv1.ConditionTrue, router(1, 1, 1, 0, fails), now},
		"stays lost":        {operatorv1.ConditionFalse, router(1, 1, 1, 0, fails), earlier},
	} {
		ic := &operatorv1.IngressController{
			ObjectMeta: metav1.ObjectMeta{Name: "internal", Generation: 7},
			Status: operatorv1.IngressControllerStatus{Domain: "apps.example.com", Conditions: []operatorv1.OperatorCondition{
				{Type: "Available", Status: test.live, Reason: "Whatever", LastTransitionTime: earlier}, foreign,
			}},
		}
		before := ic.DeepCopy()
		got, _ := desiredStatus(ic, private(), test.router, now)
		if c := find(got.Conditions, "Available"); c.LastTransitionTime != test.since || c.Reason == "Whatever" {
			t.Errorf("%s: %+v, want it since %s", name, c, test.since)
		}
		if diff := cmp.Diff(foreign, got.Conditions[1]); diff != "" {
			t.Errorf("%s: another's condition (-want +got):\n%s", name, diff)
		}
		got.Conditions = nil
		want := operatorv1.IngressControllerStatus{
			Domain: "apps.example.com", ObservedGeneration: 7, AvailableReplicas: test.router.Status.AvailableReplicas,
			EndpointPublishingStrategy: private(),
			Selector:                   "ingresscontroller.operator.openshift.io/deployment-ingresscontroller=internal",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, ic); diff != "" {
			t.Errorf("%s: the input was changed (-before +after):\n%s", name, diff)
		}
	}
}
