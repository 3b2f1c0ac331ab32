package auth

import (
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

// Host is what an authentication operator knows about the cluster for which it shapes its operands.
type Host struct {
	Cluster topology.Cluster
	// SchedulableControlPlaneNodes is how many nodes carry the master role and no taint for good that the pods do not
	// tolerate. A node that is cordoned for a while, not ready, or rebooting counts: leaving it out would scale both
	// Deployments down and up again in the middle of every rolling update of the nodes.
	SchedulableControlPlaneNodes int32
}

// pool is where the pods run: on the control plane, or on workers where there is no control plane in the cluster.
func (h Host) pool() topology.Pool { return h.Cluster.PoolFor(topology.ControlPlanePool) }

// mode is the topology of that pool.
func (h Host) mode() configv1.TopologyMode { return h.Cluster.Governing(topology.ControlPlanePool) }

// Replicas is the number of pods of either Deployment: 1 on SingleReplica and 2 on DualReplica and HighlyAvailableArbiter, whatever
// the number of nodes is at the moment; on HighlyAvailable, and where the mode is empty or unknown, one per schedulable
// control-plane node as upstream has it, and at least 1. With an External control plane the pods run on workers, and the
// infrastructure topology says 1 or 2.
func Replicas(h Host) int32 {
	if h.pool() != topology.ControlPlanePool {
		return topology.Replicas(h.mode())
	}
	switch h.mode() {
	case configv1.SingleReplicaTopologyMode:
		return 1
	case configv1.DualReplicaTopologyMode, configv1.HighlyAvailableArbiterMode:
		return 2
	case configv1.HighlyAvailableTopologyMode, configv1.ExternalTopologyMode:
		return max(1, h.SchedulableControlPlaneNodes)
	default:
		return max(1, h.SchedulableControlPlaneNodes)
	}
}

// ShapeOAuthServer returns a copy of the oauth-openshift Deployment with everything that depends on the topology set together,
// so that a rollout and a drain can finish: replicas, rolling update, node selector with the tolerations that go with it, and
// anti-affinity. Old and new pods may share a node, so the only pod of SingleReplica is replaced without an outage: no
// anti-affinity, the new pod first. Elsewhere the pods of one revision are kept on different nodes.
//
// Pods of another shape that still run may keep the new one off the only node: see workload.GiveWay.
//
// The Deployment's selector must already be there, since the anti-affinity selects by it. Everything else stays as it is; see
// workload.Separate for the terms of its own anti-affinity.
func ShapeOAuthServer(deployment *appsv1.Deployment, h Host) *appsv1.Deployment {
	separation := workload.Together
	if topology.SpreadRequired(h.mode()) {
		separation = workload.PerRevision
	}
	return shape(deployment, h, false, separation)
}

// ShapeOAuthAPIServer is ShapeOAuthServer for the oauth-apiserver Deployment. Its pods write an audit log to a directory of
// their node (facts/upstream.md section 5), so there are never two of them on one node, whatever their revision: the old pod
// goes before its successor comes, also where it is the only one.
func ShapeOAuthAPIServer(deployment *appsv1.Deployment, h Host) *appsv1.Deployment {
	return shape(deployment, h, true, workload.Always)
}

func shape(deployment *appsv1.Deployment, h Host, exclusive bool, separation workload.Separation) *appsv1.Deployment {
	shaped := deployment.DeepCopy()
	shaped.Spec.Replicas = ptr.To(Replicas(h))
	shaped.Spec.Strategy = workload.RollingUpdate(topology.RolloutStrategy(h.mode(), exclusive))
	workload.Place(&shaped.Spec.Template.Spec, h.pool())
	workload.Separate(shaped, separation)
	return shaped
}

// OAuthServerPodDisruptionBudget is the budget for the pods of oauth-openshift, which podLabels select, or nil on SingleReplica,
// where there must be none and an existing one should be deleted. Upstream has none in any mode; it is offered because a
// drain of two nodes at once would log everybody out.
func OAuthServerPodDisruptionBudget(h Host, podLabels map[string]string) *policyv1.PodDisruptionBudget {
	return workload.DisruptionBudget(OAuthServerNamespace, OAuthServerName+"-pdb", h.mode(), podLabels)
}

// OAuthAPIServerPodDisruptionBudget is the same for oauth-apiserver, under the name that upstream uses.
func OAuthAPIServerPodDisruptionBudget(h Host, podLabels map[string]string) *policyv1.PodDisruptionBudget {
	return workload.DisruptionBudget(OAuthAPIServerNamespace, OAuthAPIServerName+"-pdb", h.mode(), podLabels)
}
