package auth

import (
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
)

// ObserveOAuthServer tells how the oauth-openshift Deployment stands: whether it has its shape, and whether as many pods are
// available as the shape asks for. One of one is healthy, and a rollout is under way, not failing. Call it when the applied
// intent stands; the Deployment and the Cluster must be there.
func ObserveOAuthServer(in Inputs) patch.Result { return oauthServer.observe(in) }

// ObserveOAuthAPIServer is the same for the Deployment of the OAuth API server.
func ObserveOAuthAPIServer(in Inputs) patch.Result { return oauthAPIServer.observe(in) }

// ObserveOverride tells how the override stands once its applied intent stands: whether the object that was read has it.
func ObserveOverride(in Inputs) patch.Result {
	if in.Authentication != nil {
		if override, err := ReadOverride(overrides(in)); err != nil {
			return *invalid(err)
		} else if override.Value {
			return patch.Result{State: patch.InForce, Reason: ReasonAsExpected,
				Message: "The override is set, so the OAuth servers do not wait for three control-plane nodes; a set override blocks upgrades"}
		}
	}
	return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut, Message: "The override is being set"}
}

func (o operand) observe(in Inputs) patch.Result {
	progressing := patch.Result{State: patch.Progressing, Reason: ReasonRollingOut}
	progressing.Message = "The " + o.subject() + " is being shaped"
	live := o.live(in)
	if live == nil || in.Cluster == nil {
		return progressing
	}
	switch wanted, err := o.wanted(in); {
	case err != nil:
		return *invalid(err)
	case len(differences(live, wanted)) > 0:
	case workload.RolloutStuck(live):
		message := "The rollout of the " + o.subject() + " does not finish and no pod is available; look at the events and logs of its pods"
		if live.Status.AvailableReplicas > 0 {
			message = "The rollout of the " + o.subject() + " does not finish, other pods still serve; look at the events and logs of its pods"
		}
		return patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: message}
	case !workload.RolledOut(live):
		progressing.Message = "The " + o.subject() + " is rolling out; if pods stay Pending or crash, look at their events and logs"
	default:
		return patch.Result{State: patch.InForce, Reason: ReasonAsExpected,
			Message: "The " + o.subject() + " has the shape of the topology, and all of its pods are available" + in.Cluster.UnknownValues()}
	}
	return progressing
}
