package etcdguard_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

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

// Where the guard is left to somebody else it is said how it stands, with what to do, and only a rollout that does not finish is a failure.
func TestLeavesAndSays(t *testing.T) {
	rollout := func(updated, available int32, reason string) func(*etcdguard.Inputs) {
		return func(in *etcdguard.Inputs) {
			in.Deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: 3, UpdatedReplicas: updated, AvailableReplicas: available}
			in.Deployment.Generation = 4
			if reason != "" {
				in.Deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: reason}}
			}
		}
	}
	const deadline = "ProgressDeadlineExceeded"
	pods := func(observed int64, expected, healthy int32) func(*etcdguard.Inputs) {
		return func(in *etcdguard.Inputs) {
			operatorGuard(in)
			in.PodsBudget.Generation = 2
			in.PodsBudget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: observed, ExpectedPods: expected, CurrentHealthy: healthy, DesiredHealthy: expected - 1}
		}
	}
	newer := func(in *etcdguard.Inputs) { in.Deployment.Generation++ }
	const notReady, stuckText, quiet = "Some guards are not ready", "delete the old pod", ""
	for name, test := range map[string]struct {
		in     etcdguard.Inputs
		state  patch.State
		reason string
		says   string
	}{
		"the release's, ready":                  {of(ha, 3, rollout(3, 3, "")), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"the release's, rolling out":            {of(ha, 3, rollout(1, 3, "")), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"the release's, one not ready":          {of(ha, 3, rollout(3, 2, "")), patch.NotNeeded, etcdguard.ReasonNotNeeded, notReady},
		"the release's, not seen":               {of(ha, 3, rollout(3, 2, deadline), newer), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"the release's, stuck":                  {of(ha, 3, rollout(1, 2, deadline)), patch.Failed, etcdguard.ReasonRolloutStuck, stuckText},
		"the release's, stuck and then done":    {of(ha, 3, rollout(3, 3, deadline)), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"an earlier operator's, ready":          {of(ha, 3, left, rollout(3, 3, "")), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"an earlier operator's, one not ready":  {of(ha, 3, left, rollout(3, 2, "")), patch.NotNeeded, etcdguard.ReasonNotNeeded, notReady},
		"an earlier operator's, stuck":          {of(ha, 3, left, rollout(1, 2, deadline)), patch.Failed, etcdguard.ReasonRolloutStuck, stuckText},
		"too few of an operator's":              {of(ha, 5, left, rollout(3, 3, "")), patch.Blocked, etcdguard.ReasonFieldOwnedByOther, quiet},
		"too few of an operator's, not ready":   {of(ha, 5, left, rollout(3, 2, "")), patch.Blocked, etcdguard.ReasonFieldOwnedByOther, notReady},
		"too few of an operator's, stuck":       {of(ha, 5, left, rollout(1, 2, deadline)), patch.Failed, etcdguard.ReasonRolloutStuck, stuckText},
		"a person's, stuck":                     {of(ha, 5, scaled, rollout(0, 0, deadline)), patch.Failed, etcdguard.ReasonRolloutStuck, stuckText},
		"today's operator's, ready":             {of(ha, 3, pods(2, 3, 3)), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"today's operator's, one not ready":     {of(ha, 3, pods(2, 3, 2)), patch.NotNeeded, etcdguard.ReasonNotNeeded, notReady},
		"today's operator's, none there":        {of(ha, 3, pods(2, 0, 0)), patch.NotNeeded, etcdguard.ReasonNotNeeded, notReady},
		"today's operator's, not seen":          {of(ha, 3, pods(1, 3, 2)), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"today's operator's, never seen":        {of(ha, 3, pods(0, 3, 2), func(in *etcdguard.Inputs) { in.PodsBudget.Generation = 0 }), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"today's operator's, no budget yet":     {of(ha, 3, conditions("GuardControllerDegraded")), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"today's operator's, a Deployment left": {of(ha, 3, pods(2, 3, 3), rollout(1, 2, deadline)), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"External":                              {of(external, 0, rollout(1, 2, deadline)), patch.NotNeeded, etcdguard.ReasonNotNeeded, quiet},
		"opted out":                             {of(ha, 3, optOut, rollout(1, 2, deadline)), patch.OptedOut, etcdguard.ReasonOptedOut, quiet},
	} {
		t.Run(name, func(t *testing.T) {
			d := etcdguard.Decide(test.in)
			if d.Action != etcdguard.Nothing || d.Result.State != test.state || d.Result.Reason != test.reason {
				t.Errorf("%s %s; want %s %s", d.Action, d.Result, test.state, test.reason)
			}
			for _, text := range []string{notReady, stuckText} {
				if strings.Contains(d.Result.Message, text) != (text == test.says) {
					t.Errorf("%s; want %q and nothing else", d.Result, test.says)
				}
			}
		})
	}
}
