// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorv1ac "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// summary returns status and reason of each condition. Every condition must have a message.
func summary(t *testing.T, conditions []*operatorv1ac.OperatorConditionApplyConfiguration) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, c := range conditions {
		got[*c.Type] = string(*c.Status) + " " + *c.Reason
		if *c.Message == "" {
			t.Errorf("%s has no message", *c.Type)
		}
	}
	return got
}

func TestDeploymentConditions(t *testing.T) {
	o := DefaultOptions().operands()[0]
	deployment := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)}, Status: status}
	}
	passed := []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}}
	for _, test := range []struct {
		name string
		live *appsv1.Deployment
		want [3]string
	}{
		{"new", deployment(appsv1.DeploymentStatus{}), [3]string{"False RollingOut", "True RollingOut", "False AsExpected"}},
		{"one of one", deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}),
			[3]string{"True AsExpected", "False AsExpected", "False AsExpected"}},
		{"rolling out next to the old one", deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1}),
			[3]string{"True AsExpected", "True RollingOut", "False AsExpected"}},
		{"stuck, the old one serves", deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: passed}),
			[3]string{"True AsExpected", "False AsExpected", "True RolloutStuck"}},
		{"stuck, nothing serves", deployment(appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, Conditions: passed}),
			[3]string{"False RolloutStuck", "False AsExpected", "True RolloutStuck"}},
	} {
		want := map[string]string{"ConsoleDeploymentAvailable": test.want[0], "ConsoleDeploymentProgressing": test.want[1], "ConsoleDeploymentDegraded": test.want[2]}
		if diff := cmp.Diff(want, summary(t, o.deploymentConditions(test.live, ""))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	want := map[string]string{"ConsoleDeploymentAvailable": "True Removed", "ConsoleDeploymentProgressing": "False Removed", "ConsoleDeploymentDegraded": "False Removed"}
	if diff := cmp.Diff(want, summary(t, o.removedConditions())); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}
