package etcdguard_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
)

func TestObserve(t *testing.T) {
	status := func(replicas, updated, available int32, conditions ...appsv1.DeploymentCondition) func(*etcdguard.Inputs) {
		return func(in *etcdguard.Inputs) {
			in.Deployment.Status = appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available, Conditions: conditions}
		}
	}
	stuck := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}
	going := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}
	newer := func(in *etcdguard.Inputs) { in.Deployment.Generation = 9 }
	for name, test := range map[string]struct {
		in     etcdguard.Inputs
		state  patch.State
		reason string
		says   string
	}{
		"all ready":              {of(ha, 3, status(3, 3, 3, going)), patch.InForce, etcdguard.ReasonAsExpected, "every member"},
		"unknown topology":       {of(unknown, 3, status(3, 3, 3, going)), patch.InForce, etcdguard.ReasonAsExpected, "Quantum"},
		"one not ready":          {of(ha, 3, status(3, 3, 2, going)), patch.Progressing, etcdguard.ReasonRollingOut, "fewer nodes"},
		"kept from the release":  {of(ha, 5, status(3, 3, 3, going), func(in *etcdguard.Inputs) { in.ClusterVersion = claimed() }), patch.InForce, etcdguard.ReasonAsExpected, "minor upgrades wait"},
		"one not ready for long": {of(ha, 3, status(3, 3, 2, stuck)), patch.Failed, etcdguard.ReasonRolloutStuck, "see whether the etcd"},
		"an old one in the way":  {of(ha, 3, status(3, 1, 2, stuck)), patch.Failed, etcdguard.ReasonRolloutStuck, "delete the old pod"},
		"not seen yet":           {of(ha, 3, status(3, 3, 3, stuck), newer), patch.Progressing, etcdguard.ReasonRollingOut, "Waiting"},
		"an old pod left":        {of(ha, 3, status(3, 2, 3, going)), patch.Progressing, etcdguard.ReasonRollingOut, "Waiting"},
		"no budget":              {of(ha, 3, status(3, 3, 3), func(in *etcdguard.Inputs) { in.Budget = nil }), patch.Progressing, etcdguard.ReasonRollingOut, "being written"},
		"no Deployment":          {of(ha, 3, func(in *etcdguard.Inputs) { in.Deployment = nil }), patch.Progressing, etcdguard.ReasonRollingOut, "being written"},
	} {
		t.Run(name, func(t *testing.T) {
			got := etcdguard.Observe(test.in)
			if got.State != test.state || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("%s; want %s %s saying %q", got, test.state, test.reason, test.says)
			}
		})
	}
}
