package console_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
)

// running are the counts of a Deployment's status at its present generation.
func running(replicas, updated, available int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Generation = 2
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available}
	}
}

func progressing(status corev1.ConditionStatus, reason string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
			{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason},
		}
	}
}

func TestHealth(t *testing.T) {
	const (
		fine   = "Every replica is available"
		up     = "Rolling out while available; if a pod stays Pending, look at its events"
		down   = "Rolling out, no replica is available yet; if a pod stays Pending, look at its events"
		stuck  = "The rollout does not finish, older pods still serve; look at the events of its pods"
		dead   = "The rollout does not finish and no replica is available; look at the events of its pods"
		paused = "The rollout is paused; resume it with oc rollout resume"
	)
	deadline := progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded")
	for name, test := range map[string]struct {
		change  []func(*appsv1.Deployment)
		state   patch.State
		reason  string
		message string
	}{
		"one of one":                 {with(running(1, 1, 1)), patch.InForce, "AsExpected", fine},
		"one of one by default":      {with(running(1, 1, 1), func(d *appsv1.Deployment) { d.Spec.Replicas = nil }), patch.InForce, "AsExpected", fine},
		"one of one, late":           {with(running(1, 1, 1), deadline), patch.InForce, "AsExpected", fine},
		"scaled to nothing":          {with(running(0, 0, 0), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) }), patch.InForce, "AsExpected", fine},
		"one of two":                 {with(running(2, 2, 1), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }), patch.Progressing, "RollingOut", up},
		"two of two":                 {with(running(2, 2, 2), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }), patch.InForce, "AsExpected", fine},
		"none":                       {with(running(1, 1, 0)), patch.Progressing, "RollingOut", down},
		"the new pod beside the old": {with(running(2, 1, 1)), patch.Progressing, "RollingOut", up},
		"the old pod is not gone":    {with(running(2, 1, 2)), patch.Progressing, "RollingOut", up},
		"no new pod yet":             {with(running(1, 0, 1)), patch.Progressing, "RollingOut", up},
		"status of an older spec":    {with(running(1, 1, 1), func(d *appsv1.Deployment) { d.Generation = 3 }), patch.Progressing, "RollingOut", up},
		"an older spec's deadline":   {with(running(1, 1, 0), deadline, func(d *appsv1.Deployment) { d.Generation = 3 }), patch.Progressing, "RollingOut", down},
		"still within the deadline":  {with(running(1, 1, 0), progressing(corev1.ConditionTrue, "ReplicaSetUpdated")), patch.Progressing, "RollingOut", down},
		"stuck while serving":        {with(running(2, 1, 1), deadline), patch.Failed, "RolloutStuck", stuck},
		"stuck and down":             {with(running(1, 1, 0), deadline), patch.Failed, "RolloutStuck", dead},
		"paused":                     {with(running(1, 0, 1), func(d *appsv1.Deployment) { d.Spec.Paused = true }), patch.Progressing, "RollingOut", paused},
	} {
		got := console.Health(shaped("console", test.change...))
		if want := (patch.Result{State: test.state, Reason: test.reason, Message: test.message}); got != want {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
	if got := console.Health(nil); got.State != patch.Waiting || got.Reason != "WaitingForObject" {
		t.Errorf("no Deployment: %v", got)
	}
}

func TestObserve(t *testing.T) {
	ok := func(name string) *appsv1.Deployment { return shaped(name, running(1, 1, 1), ownedBy(us, shapeJSON)) }
	plainly := clusterVersion(nil)
	for name, test := range map[string]struct {
		change        []func(*console.Inputs)
		reason, wants string
		state         patch.State
	}{
		"both run":          {changes(plainly, consoleIs(ok("console")), downloads(ok("downloads"))), "AsExpected", "One replica runs and is available", patch.InForce},
		"one rolls":         {changes(plainly, consoleIs(ok("console")), downloads(shaped("downloads", running(1, 1, 0), ownedBy(us, shapeJSON)))), "RollingOut", "Rolling out, no replica is available yet; if a pod stays Pending, look at its events", patch.Progressing},
		"the other rolls":   {changes(plainly, downloads(ok("downloads")), consoleIs(shaped("console", running(2, 1, 1), ownedBy(us, shapeJSON)))), "RollingOut", "Rolling out while available; if a pod stays Pending, look at its events", patch.Progressing},
		"one is not shaped": {changes(plainly, consoleIs(ok("console")), downloads(manifest("downloads", running(2, 2, 2), ownedBy("installer", containersJSON)))), "RollingOut", "The Deployment is being shaped", patch.Progressing},
		// A Deployment that is not ours to shape is not ours to judge.
		"only downloads is ours": {changes(plainly, consoleIs(stockShape("console", running(1, 1, 0))), downloads(ok("downloads"))), "AsExpected", "One replica runs and is available", patch.InForce},
		"nothing is ours":        {changes(topologies("ha", "ha")), "AsExpected", "Nothing is shaped", patch.InForce},
		"unknown value": {changes(plainly, topologies("sr", "unknown"), consoleIs(ok("console")), downloads(ok("downloads"))), "AsExpected",
			`One replica runs and is available; status.infrastructureTopology has the unknown value "Quantum", acting on HighlyAvailable`, patch.InForce},
	} {
		in := inputs(test.change...)
		got := console.Observe(in, console.Decide(in))
		if want := (patch.Result{State: test.state, Reason: test.reason, Message: test.wants}); got != want {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}

func with(f ...func(*appsv1.Deployment)) []func(*appsv1.Deployment) { return f }
