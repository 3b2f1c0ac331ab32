package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDesiredStatus(t *testing.T) {
	earlier, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	foreign := operatorv1.OperatorCondition{Type: "IngressTopologyPatchInForce", Status: operatorv1.ConditionTrue, LastTransitionTime: earlier}
	condition := func(status operatorv1.ConditionStatus, reason string, at metav1.Time) operatorv1.OperatorCondition {
		return operatorv1.OperatorCondition{Type: "Available", Status: status, Reason: reason, LastTransitionTime: at}
	}
	for _, test := range []struct {
		name      string
		live      []operatorv1.OperatorCondition
		router    *appsv1.Deployment
		available int32
		want      []operatorv1.OperatorCondition
	}{
		{"no router yet", nil, nil, 0,
			[]operatorv1.OperatorCondition{condition(operatorv1.ConditionFalse, "DeploymentUnavailable", now)}},
		{"the first of ours among others",
			[]operatorv1.OperatorCondition{foreign}, deployment(1), 1,
			[]operatorv1.OperatorCondition{foreign, condition(operatorv1.ConditionTrue, "DeploymentAvailable", now)}},
		{"becomes available, others stay",
			[]operatorv1.OperatorCondition{foreign, condition(operatorv1.ConditionFalse, "DeploymentUnavailable", earlier)}, deployment(2), 2,
			[]operatorv1.OperatorCondition{foreign, condition(operatorv1.ConditionTrue, "DeploymentAvailable", now)}},
		{"stays available",
			[]operatorv1.OperatorCondition{condition(operatorv1.ConditionTrue, "DeploymentAvailable", earlier)}, deployment(1), 1,
			[]operatorv1.OperatorCondition{condition(operatorv1.ConditionTrue, "DeploymentAvailable", earlier)}},
		{"is lost, reason corrected",
			[]operatorv1.OperatorCondition{condition(operatorv1.ConditionTrue, "Whatever", earlier), foreign}, deployment(0), 0,
			[]operatorv1.OperatorCondition{condition(operatorv1.ConditionFalse, "DeploymentUnavailable", now), foreign}},
	} {
		ic := &operatorv1.IngressController{
			ObjectMeta: metav1.ObjectMeta{Name: "internal", Generation: 7},
			Status:     operatorv1.IngressControllerStatus{Domain: "apps.example.com", Conditions: test.live},
		}
		before := ic.DeepCopy()
		got := desiredStatus(ic, private(), test.router, now)
		for i := range got.Conditions {
			if got.Conditions[i].Type == "Available" && got.Conditions[i].Message == "" {
				t.Errorf("%s: no message", test.name)
			}
			got.Conditions[i].Message = ""
		}
		want := operatorv1.IngressControllerStatus{
			Domain: "apps.example.com", ObservedGeneration: 7, AvailableReplicas: test.available, Conditions: test.want,
			EndpointPublishingStrategy: private(),
			Selector:                   "ingresscontroller.operator.openshift.io/deployment-ingresscontroller=internal",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(before, ic); diff != "" {
			t.Errorf("%s: the input was changed (-before +after):\n%s", test.name, diff)
		}
	}
}
