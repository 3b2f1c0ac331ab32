package auth

import (
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

var (
	// ErrHost is returned for a Host that NewHost did not make.
	ErrHost = errors.New("empty Host: make it with NewHost")
	// ErrNoNodes is returned where the number of pods follows the control-plane nodes and there is none.
	ErrNoNodes = errors.New("no schedulable control-plane node: count them with SchedulableControlPlaneNodes, and wait for the first")
)

// Host is what an authentication operator knows about the cluster for which it shapes its operands. NewHost makes one; every function
// that takes a Host returns ErrHost for the zero value.
type Host struct {
	// pool is where the pods run: on the control plane, or on workers where there is no control plane in the cluster.
	pool topology.Pool
	// mode is the topology of that pool. It is empty in the zero Host only.
	mode     configv1.TopologyMode
	replicas int32
}

// NewHost reads what matters about a cluster, which topology.FromInfrastructure read. schedulableControlPlaneNodes is how many nodes carry
// the master role and no taint for good that the pods do not tolerate, as SchedulableControlPlaneNodes counts them. A node that is
// cordoned for a while, not ready, or rebooting counts: leaving it out would scale both Deployments down and up again in the middle of
// every rolling update of the nodes.
//
// Errors: topology.ErrClusterNotRead, and ErrNoNodes for a number below 1 where the number of pods follows it.
func NewHost(cluster topology.Cluster, schedulableControlPlaneNodes int32) (Host, error) {
	if err := cluster.Validate(); err != nil {
		return Host{}, err //nolint:wrapcheck // it says what to do
	}
	pool := cluster.PoolFor(topology.ControlPlanePool)
	host := Host{pool: pool, mode: cluster.Governing(pool)}
	replicas, byNodes := replicasByTopology(pool, host.mode)
	if byNodes {
		replicas = schedulableControlPlaneNodes
	}
	if replicas < 1 {
		return Host{}, fmt.Errorf("%w (%d on %s)", ErrNoNodes, schedulableControlPlaneNodes, host.mode)
	}
	host.replicas = replicas
	return host, nil
}

func (h Host) made() error {
	if h.mode == "" {
		return ErrHost
	}
	return nil
}

// replicasByTopology is the number of pods, or that it follows the nodes.
func replicasByTopology(pool topology.Pool, mode configv1.TopologyMode) (replicas int32, byNodes bool) {
	if pool != topology.ControlPlanePool {
		return topology.Replicas(mode), false
	}
	switch mode {
	case configv1.SingleReplicaTopologyMode:
		return 1, false
	case configv1.DualReplicaTopologyMode, configv1.HighlyAvailableArbiterMode:
		return 2, false
	case configv1.HighlyAvailableTopologyMode, configv1.ExternalTopologyMode:
		return 0, true
	default:
		return 0, true
	}
}

// Replicas is the number of pods of either Deployment: 1 on SingleReplica and 2 on DualReplica and HighlyAvailableArbiter, whatever
// the number of nodes is at the moment; on HighlyAvailable, and where the mode is empty or unknown, one per schedulable
// control-plane node as upstream has it (R-AUTH-3, U-AUTH-1). With an External control plane the pods run on workers, and the infrastructure topology says
// 1 or 2. Error: ErrHost.
func Replicas(h Host) (int32, error) { return h.replicas, h.made() }

// ShapeOAuthServer returns a copy of the oauth-openshift Deployment with everything that depends on the topology set together,
// so that a rollout and a drain can finish: replicas, rolling update as OAuthServerStrategy, node selector with the tolerations that go
// with it, and anti-affinity. Old and new pods may share a node, so the only pod of SingleReplica is replaced without an outage: no
// anti-affinity, the new pod first. Elsewhere the pods of one revision are kept on different nodes.
//
// Pods of another shape that still run may keep the new one off the only node: see workload.GiveWay.
//
// The Deployment's selector must already be there, since the anti-affinity selects by it. Everything else stays as it is; see
// workload.Separate for the terms of its own anti-affinity. Error: ErrHost.
func ShapeOAuthServer(deployment *appsv1.Deployment, h Host) (*appsv1.Deployment, error) {
	return shape(deployment, h, h.serverRollout(), h.serverSeparation())
}

// ShapeOAuthAPIServer is ShapeOAuthServer for the Deployment of the OAuth API server. Its pods write an audit log to a directory of
// their node (U-AUTH-2), so there are never two of them on one node, whatever their revision: the old pod
// goes before its successor comes, also where it is the only one. Error: ErrHost.
func ShapeOAuthAPIServer(deployment *appsv1.Deployment, h Host) (*appsv1.Deployment, error) {
	return shape(deployment, h, h.apiServerRollout(), workload.Always)
}

func shape(deployment *appsv1.Deployment, h Host, rollout topology.Rollout, separation workload.Separation) (*appsv1.Deployment, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	shaped := deployment.DeepCopy()
	shaped.Spec.Replicas = ptr.To(h.replicas)
	shaped.Spec.Strategy = workload.RollingUpdate(rollout)
	workload.Place(&shaped.Spec.Template.Spec, h.pool)
	workload.Separate(shaped, separation)
	return shaped, nil
}

// OAuthServerStrategy is the rolling update of oauth-openshift alone, for an operator that does not have the whole Deployment shaped. On
// SingleReplica the new pod starts beside the old one (0 / 1). Everywhere else it is upstream's for n pods (OCPBUGS-57444,
// U-AUTH-1): all but one may be away, at least one, and n may be added. Error: ErrHost.
func OAuthServerStrategy(h Host) (appsv1.DeploymentStrategy, error) {
	return h.strategy(h.serverRollout())
}

// OAuthAPIServerStrategy is the same for the OAuth API server: one pod goes before its successor comes (1 / 0), on every topology and
// upstream. Error: ErrHost.
func OAuthAPIServerStrategy(h Host) (appsv1.DeploymentStrategy, error) {
	return h.strategy(h.apiServerRollout())
}

func (h Host) strategy(rollout topology.Rollout) (appsv1.DeploymentStrategy, error) {
	if err := h.made(); err != nil {
		return appsv1.DeploymentStrategy{}, err
	}
	return workload.RollingUpdate(rollout), nil
}

func (h Host) serverRollout() topology.Rollout {
	if topology.SingleReplica(h.mode) {
		return topology.RolloutStrategy(h.mode, false)
	}
	return topology.Rollout{MaxUnavailable: intstr.FromInt32(max(h.replicas-1, 1)), MaxSurge: intstr.FromInt32(h.replicas)}
}

func (h Host) apiServerRollout() topology.Rollout { return topology.RolloutStrategy(h.mode, true) }

func (h Host) serverSeparation() workload.Separation {
	if topology.SpreadRequired(h.mode) {
		return workload.PerRevision
	}
	return workload.Together
}

// OAuthServerAntiAffinity is the pod anti-affinity of oauth-openshift alone, or nil where its pods may share a node and there should be
// none. podLabels select the pods. Error: ErrHost.
func OAuthServerAntiAffinity(h Host, podLabels map[string]string) (*corev1.PodAntiAffinity, error) {
	return h.antiAffinity(h.serverSeparation(), podLabels)
}

// OAuthAPIServerAntiAffinity is the same for the OAuth API server, which always has one. Error: ErrHost.
func OAuthAPIServerAntiAffinity(h Host, podLabels map[string]string) (*corev1.PodAntiAffinity, error) {
	return h.antiAffinity(workload.Always, podLabels)
}

func (h Host) antiAffinity(separation workload.Separation, podLabels map[string]string) (*corev1.PodAntiAffinity, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	return workload.AntiAffinity(separation, podLabels), nil
}

// OAuthServerPodDisruptionBudget is the budget for the pods of oauth-openshift, which podLabels select, or nil on SingleReplica,
// where there must be none and an existing one should be deleted. Upstream has none in any mode; it is offered because a
// drain of two nodes at once would log everybody out. Error: ErrHost.
func OAuthServerPodDisruptionBudget(h Host, podLabels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	return budget(h, OAuthServerNamespace, OAuthServerBudgetName, podLabels)
}

// OAuthAPIServerPodDisruptionBudget is the same for the OAuth API server, under the name that upstream uses. Error: ErrHost.
func OAuthAPIServerPodDisruptionBudget(h Host, podLabels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	return budget(h, OAuthAPIServerNamespace, OAuthAPIServerBudgetName, podLabels)
}

func budget(h Host, namespace, name string, podLabels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	return workload.DisruptionBudget(namespace, name, h.mode, podLabels), nil
}
