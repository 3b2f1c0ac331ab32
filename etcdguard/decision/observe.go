// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology/workload"
)

const (
	stuck = "The rollout of the guard does not finish. If an old pod keeps a new one Pending, delete the old pod; otherwise check the health of " +
		"etcd on the nodes of the guards that are not ready, and that there are as many control-plane nodes as guards"
	notReady = "Some guards are not ready, so fewer nodes can be drained; check the health of etcd on their nodes, " +
		"and delete a guard that stays Pending or has failed: it is recreated"
)

// Observe returns the state of the guard when Decide returns no write: InForce if every guard is ready, Failed if the
// Deployment's progress deadline has passed, else Progressing.
func Observe(in Inputs) patch.Result {
	switch {
	case in.Deployment == nil || in.Budget == nil || in.Cluster == nil:
		return patch.Result{State: patch.Progressing, Reason: patch.ReasonRollingOut, Message: "The guard is being written"}
	case workload.RolledOut(in.Deployment):
		message := "Every member of etcd has a ready guard"
		if in.ClusterVersion != nil && ownership.Owns(in.ClusterVersion, FieldOwner) {
			message += unmanagedSuffix
		}
		return patch.Result{State: patch.InForce, Reason: patch.ReasonAsExpected, Message: message + in.Cluster.UnknownValues()}
	case workload.RolloutStuck(in.Deployment):
		return patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck, Message: stuck}
	}
	return patch.Result{State: patch.Progressing, Reason: patch.ReasonRollingOut, Message: "Not every guard is ready, so fewer nodes can be drained"}
}

// withHealth adds the health of another writer's guard to a result. Only a stuck rollout is a failure; guard pods of
// current operators have no deadline.
func (in Inputs) withHealth(result patch.Result) *patch.Result {
	otherWriter := result.State == patch.NotNeeded || result.State == patch.Blocked
	switch {
	case !otherWriter || in.Cluster == nil || !needsGuards(in.mode()):
	case in.operatorHasGuards():
		if in.operatorGuardsUnready() {
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
