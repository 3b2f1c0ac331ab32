package console

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/patch"
	shapes "github.com/solonode/sno/patch/workload"
)

// Health tells how a Deployment stands, whatever its shape: every replica that it asks for is available, one of one included.
// A rollout is Progressing and degrades nothing, also while the only pod is being replaced; it is Failed when the
// Deployment's own progress deadline has passed.
func Health(deployment *appsv1.Deployment) patch.Result {
	if deployment == nil {
		return patch.Result{State: patch.Waiting, Reason: ReasonWaitingForObject,
			Message: "There is no Deployment; its operator makes one, this module never does"}
	}
	want := int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	status := deployment.Status
	if status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas >= want {
		return patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: "Every replica is available"}
	}
	switch {
	case deployment.Spec.Paused:
		return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut,
			Message: "The rollout is paused; resume it with oc rollout resume"}
	case shapes.RolloutStuck(deployment):
		message := "The rollout does not finish and no replica is available; look at the events of its pods"
		if status.AvailableReplicas > 0 {
			message = "The rollout does not finish, older pods still serve; look at the events of its pods"
		}
		return patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: message}
	case status.AvailableReplicas > 0:
		return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut,
			Message: "Rolling out while available; if a pod stays Pending, look at its events"}
	}
	return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut,
		Message: "Rolling out, no replica is available yet; if a pod stays Pending, look at its events"}
}

// Observe tells how the patch stands on those Deployments for which the decision holds an intent: whether the shape is on
// them, and their health. Without any intent there is nothing to observe, and Decision.Result says why. Call it when the
// applied intents stand.
func Observe(in Inputs, decision Decision) patch.Result {
	result := patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: "Nothing is shaped"}
	first := true
	for _, of := range []struct {
		live *appsv1.Deployment
		step DeploymentStep
	}{{in.Console, decision.Console}, {in.Downloads, decision.Downloads}} {
		if of.step.Intent == nil {
			continue
		}
		seen := Health(of.live)
		switch {
		case of.live != nil && in.Cluster != nil && len(differences(of.live, *in.Cluster)) > 0:
			seen = patch.Result{State: patch.Progressing, Reason: ReasonRollingOut, Message: "The Deployment is being shaped"}
		case seen.State == patch.InForce:
			seen.Message = "One replica runs and is available" + unknown(in)
		}
		if first || seen.State > result.State {
			result, first = seen, false
		}
	}
	return result
}

func unknown(in Inputs) string {
	if in.Cluster == nil {
		return ""
	}
	return in.Cluster.UnknownValues()
}
