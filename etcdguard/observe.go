package etcdguard

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/workload"
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
		return patch.Result{State: patch.InForce, Reason: ReasonAsExpected, Message: "A guard is ready beside every member of etcd" + in.Cluster.UnknownValues()}
	case deadlinePassed(in.Deployment):
		return patch.Result{State: patch.Failed, Reason: ReasonRolloutStuck,
			Message: "Some guards do not become ready; see whether the etcd on their nodes is healthy, and whether there are as many control-plane nodes as the topology expects"}
	}
	return patch.Result{State: patch.Progressing, Reason: ReasonRollingOut, Message: "Waiting for every guard to be ready; until then fewer nodes may be drained"}
}

// deadlinePassed reads the Deployment controller's own verdict, so that no clock is needed here.
func deadlinePassed(d *appsv1.Deployment) bool {
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && d.Status.ObservedGeneration >= d.Generation {
			return condition.Status == corev1.ConditionFalse && condition.Reason == "ProgressDeadlineExceeded"
		}
	}
	return false
}
