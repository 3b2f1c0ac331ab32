// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

// ErrNoNodes is returned where the number of pods follows the control-plane nodes and there is none.
var ErrNoNodes = errors.New("no schedulable control-plane node: count them with SchedulableControlPlaneNodes, and wait for the first")

// modeOf returns the topology of the pool of the pods: the control plane, or workers if it is External.
func modeOf(cluster topology.Cluster) configv1.TopologyMode {
	return cluster.Governing(cluster.PoolFor(topology.ControlPlanePool))
}

// Replicas returns the number of pods of either Deployment: 1 on SingleReplica, 2 on DualReplica and
// HighlyAvailableArbiter, 1 or 2 by the infrastructure topology where the control plane is External, and else nodes, as
// counted by SchedulableControlPlaneNodes (R-AUTH-3, U-AUTH-1). Errors: topology.ErrClusterNotRead, ErrNoNodes.
func Replicas(cluster topology.Cluster, nodes int32) (int32, error) {
	if err := cluster.Validate(); err != nil {
		return 0, err
	}
	mode := modeOf(cluster)
	if cluster.PoolFor(topology.ControlPlanePool) != topology.ControlPlanePool {
		return topology.Replicas(mode), nil
	}
	switch mode {
	case configv1.SingleReplicaTopologyMode:
		return 1, nil
	case configv1.DualReplicaTopologyMode, configv1.HighlyAvailableArbiterMode:
		return 2, nil
	case configv1.HighlyAvailableTopologyMode, configv1.ExternalTopologyMode:
	}
	if nodes < 1 {
		return 0, fmt.Errorf("%w (%d on %s)", ErrNoNodes, nodes, mode)
	}
	return nodes, nil
}

// ShapeOAuthServer returns a copy of the oauth-openshift Deployment with replicas, rollout and placement for the
// topology. Pods of two revisions may share a node, so that a rollout on one node is no outage. Before every write,
// pass the result and the live Deployment to workload.UnblockRollout. Errors: those of Replicas.
func ShapeOAuthServer(deployment *appsv1.Deployment, cluster topology.Cluster, nodes int32) (*appsv1.Deployment, error) {
	replicas, err := Replicas(cluster, nodes)
	if err != nil {
		return nil, err
	}
	mode, separation := modeOf(cluster), workload.SeparateNever
	rollout := topology.RolloutStrategy(mode, false)
	if !topology.SingleReplica(mode) { // as upstream (OCPBUGS-57444, U-AUTH-1)
		rollout = topology.Rollout{MaxUnavailable: intstr.FromInt32(max(replicas-1, 1)), MaxSurge: intstr.FromInt32(replicas)}
	}
	if topology.SpreadRequired(mode) {
		separation = workload.SeparatePerRevision
	}
	return shape(deployment, cluster, replicas, rollout, separation), nil
}

// ShapeOAuthAPIServer is ShapeOAuthServer for the OAuth API server. Its pods write an audit log on their node
// (U-AUTH-2), so two of them never share a node, and an old pod is deleted before the new one starts.
func ShapeOAuthAPIServer(deployment *appsv1.Deployment, cluster topology.Cluster, nodes int32) (*appsv1.Deployment, error) {
	replicas, err := Replicas(cluster, nodes)
	if err != nil {
		return nil, err
	}
	return shape(deployment, cluster, replicas, topology.RolloutStrategy(modeOf(cluster), true), workload.SeparateAlways), nil
}

func shape(
	deployment *appsv1.Deployment, cluster topology.Cluster, replicas int32, rollout topology.Rollout, separation workload.Separation,
) *appsv1.Deployment {
	shaped := deployment.DeepCopy()
	workload.Roll(shaped, replicas, rollout)
	workload.Place(&shaped.Spec.Template.Spec, cluster.PoolFor(topology.ControlPlanePool))
	workload.Separate(shaped, separation)
	return shaped
}

// OAuthServerPodDisruptionBudget returns the budget of the pods with the labels, or nil where the topology of their
// pool is SingleReplica and an existing budget is to be deleted. Upstream has none. Error: topology.ErrClusterNotRead.
func OAuthServerPodDisruptionBudget(cluster topology.Cluster, podLabels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	return budget(cluster, OAuthServerNamespace, OAuthServerBudgetName, podLabels)
}

// OAuthAPIServerPodDisruptionBudget is OAuthServerPodDisruptionBudget for the OAuth API server, with upstream's name.
func OAuthAPIServerPodDisruptionBudget(cluster topology.Cluster, podLabels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	return budget(cluster, OAuthAPIServerNamespace, OAuthAPIServerBudgetName, podLabels)
}

func budget(cluster topology.Cluster, namespace, name string, podLabels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	return workload.DisruptionBudget(namespace, name, modeOf(cluster), podLabels), nil
}
