package etcdguard

import (
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
)

// stuck is the text about a rollout that does not finish. It is stable.
const (
	stuck = "The rollout of the guard does not finish. Where a new guard is Pending because an old one keeps it off its node, delete the old pod; " +
		"else see whether the etcd on the nodes of the others is healthy, and whether there are as many control-plane nodes as guards"
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
