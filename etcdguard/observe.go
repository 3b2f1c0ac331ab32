package etcdguard

import (
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
)

// The texts about guards that are not ready. They are stable.
const (
	stuck = "The rollout of the guard does not finish. Where a new guard is Pending because an old one keeps it off its node, delete the old pod; " +
		"else see whether the etcd on the nodes of the others is healthy, and whether there are as many control-plane nodes as guards"
	notReady = "Some guards are not ready, and until they are fewer nodes may be drained; see whether the etcd on their nodes is healthy, " +
		"and delete a guard that stays Pending or has failed: it is made again"
)

// Observe tells how the guard stands once Decide has nothing left to write and nothing to say: InForce when every guard is
// ready, Progressing while some are not, and Failed when the Deployment's own progress deadline has passed. A guard that is
// not ready means that the etcd beside it is not healthy, or that there is no node for it; the quorum is guarded all the same, since
// the budget counts it as gone.
func Observe(in Inputs) patch.Result {
	if in.Deployment == nil || in.Budget == nil || in.Cluster == nil {
		return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut, Message: "The guard is being written"}
	}
	switch {
	case workload.RolledOut(in.Deployment):
		message := "A guard is ready beside every member of etcd"
		if in.ClusterVersion != nil && holdsOurs(in.ClusterVersion) {
			message += ", and the cluster-version-operator is kept away from it; minor upgrades wait until this is given back"
		}
		return patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: message + in.Cluster.UnknownValues()}
	case workload.RolloutStuck(in.Deployment):
		return patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: stuck}
	}
	return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut, Message: "Waiting for every guard to be ready; until then fewer nodes may be drained"}
}

// besides is a result that leaves the guard to somebody else, with how that guard stands. To leave it is right all the same: only a rollout
// that does not finish is a failure, and it is one by the Deployment controller's own deadline. The guards of today's operators have no
// Deployment and so no deadline; that they are not ready for long is for their operator to report as a failure.
func (in Inputs) besides(result patch.Result) *patch.Result {
	leaves := result.State == patch.NotNeeded || result.State == patch.Blocked
	switch {
	case !leaves || in.Cluster == nil || !guarded(in.mode()):
	case in.operatorGuards():
		if in.operatorLacks() {
			result.Message += ". " + notReady
		}
	case in.Deployment == nil:
	case workload.RolloutStuck(in.Deployment):
		result = patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: result.Message + ". " + stuck}
	case in.Deployment.Status.ObservedGeneration >= in.Deployment.Generation && int(in.Deployment.Status.AvailableReplicas) < replicasOf(in.Deployment):
		result.Message += ". " + notReady
	}
	return &result
}
