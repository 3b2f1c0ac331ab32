package console

import (
	"errors"
	"fmt"
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	shapes "github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

const (
	masterRole       = "node-role.kubernetes.io/master"
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
)

var (
	// ErrDeployment is returned for a Deployment that cannot be shaped: none at all, or one without a selector, by which its anti-affinity
	// selects its pods.
	ErrDeployment = errors.New("not a Deployment that can be shaped")
	// ErrName is returned for a name that neither of the two Deployments has.
	ErrName = errors.New("not a Deployment of the console; want " + ConsoleName + " or " + DownloadsName)
)

// Pool is where the pods of both Deployments run: on the control plane, or on workers where there is none. Error:
// topology.ErrClusterNotRead.
func Pool(cluster topology.Cluster) (topology.Pool, error) {
	if err := cluster.Validate(); err != nil {
		return "", err
	}
	return poolOf(cluster), nil
}

func poolOf(cluster topology.Cluster) topology.Pool {
	return cluster.PoolFor(topology.ControlPlanePool)
}

// modeOf is the topology that decides for both Deployments: that of the control plane, and with an External one that of
// the infrastructure. Choosing by anything but where the pods run went wrong upstream in both directions (U-CON-5): two
// replicas pinned to one node, and anti-affinity that one worker cannot satisfy.
func modeOf(cluster topology.Cluster) configv1.TopologyMode {
	return cluster.Governing(poolOf(cluster))
}

// Replicas is the number of pods of either Deployment: 1 where the topology of Pool is SingleReplica, else 2. Error:
// topology.ErrClusterNotRead.
func Replicas(cluster topology.Cluster) (int32, error) {
	if err := cluster.Validate(); err != nil {
		return 0, err
	}
	return topology.Replicas(modeOf(cluster)), nil
}

// ShapeDeployment returns a copy of the console or downloads Deployment with everything that depends on the topology
// set together, so that a rollout and a drain can finish (R-SNO-2): replicas, rolling update, pod anti-affinity, and a
// node selector and tolerations that agree.
//
//	topology of Pool  replicas  rolling update         anti-affinity by hostname
//	SingleReplica     1         see DeploymentStrategy  none (R-CON-1)
//	all others        2         see DeploymentStrategy  required, between all pods of the Deployment (R-CON-3)
//
// Everything else stays: node and pod affinity, anti-affinity about other pods, other namespaces or zones (see workload.Separate), other
// keys of the selector, other tolerations. The Deployment's selector must be there, and the labels of its pods.
//
// Pods of two replicas that still run keep the pod of one replica off the only node, for ever unless workload.GiveWay lets them go: pass it
// the result, with the live Deployment, before every write.
//
// Errors: topology.ErrClusterNotRead, ErrDeployment.
func ShapeDeployment(deployment *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	if deployment == nil {
		return nil, fmt.Errorf("%w: there is none", ErrDeployment)
	}
	if selector := deployment.Spec.Selector; selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, fmt.Errorf("%w: %s/%s has no spec.selector", ErrDeployment, deployment.Namespace, deployment.Name)
	}
	return shape(deployment, cluster), nil
}

func shape(deployment *appsv1.Deployment, cluster topology.Cluster) *appsv1.Deployment {
	shaped := deployment.DeepCopy()
	mode := modeOf(cluster)
	shaped.Spec.Replicas = ptr.To(topology.Replicas(mode))
	shaped.Spec.Strategy = strategy(mode)
	place(&shaped.Spec.Template.Spec, poolOf(cluster))
	shapes.Separate(shaped, separation(mode))
	return shaped
}

// place pins the pods to the control plane. Where there is none they select no role: every node there is a worker.
func place(pod *corev1.PodSpec, pool topology.Pool) {
	if pool == topology.ControlPlanePool {
		shapes.Place(pod, pool)
		return
	}
	pod.NodeSelector = maps.Clone(pod.NodeSelector)
	delete(pod.NodeSelector, masterRole)
	delete(pod.NodeSelector, controlPlaneRole)
	if len(pod.NodeSelector) == 0 {
		pod.NodeSelector = nil
	}
	pod.Tolerations = shapes.Tolerate(pod.Tolerations, pool)
}

// DeploymentStrategy is the rolling update of either Deployment alone, for an operator that does not have the whole Deployment shaped.
//
//	topology of Pool  maxUnavailable  maxSurge
//	SingleReplica     0               1         nothing keeps the new pod from starting beside the old one, so nothing is down
//	all others        1               3         as the stock operator has it (U-CON-1)
//
// With the second row a rollout ends on two nodes, although DeploymentAntiAffinity keeps each of the new pods off the node of an old one: both new
// ones are Pending, one old pod may go nevertheless, its node takes a new one, and when that is available the other old pod goes. It
// needs as many nodes as there are replicas.
//
// Error: topology.ErrClusterNotRead.
func DeploymentStrategy(cluster topology.Cluster) (appsv1.DeploymentStrategy, error) {
	if err := cluster.Validate(); err != nil {
		return appsv1.DeploymentStrategy{}, err
	}
	return strategy(modeOf(cluster)), nil
}

func strategy(mode configv1.TopologyMode) appsv1.DeploymentStrategy {
	if topology.SingleReplica(mode) {
		return shapes.RollingUpdate(topology.RolloutStrategy(mode, false))
	}
	return shapes.RollingUpdate(topology.Rollout{MaxUnavailable: intstr.FromInt32(1), MaxSurge: intstr.FromInt32(3)})
}

// DeploymentAntiAffinity is the pod anti-affinity of either Deployment alone, or nil where its pods may share a node and there should be none.
// podLabels select its pods, old and new: no two of them are on one node. Error: topology.ErrClusterNotRead.
func DeploymentAntiAffinity(cluster topology.Cluster, podLabels map[string]string) (*corev1.PodAntiAffinity, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	return shapes.AntiAffinity(separation(modeOf(cluster)), podLabels), nil
}

func separation(mode configv1.TopologyMode) shapes.Separation {
	if topology.SpreadRequired(mode) {
		return shapes.Always
	}
	return shapes.Together
}

// PodDisruptionBudget is the budget over the pods of the Deployment with that name, ConsoleName or DownloadsName, or nil when
// there must be none and an existing one should be deleted: where the topology of Pool is SingleReplica. The stock operator keeps one with
// maxUnavailable 1 in every topology (U-CON-4); over one pod that allows every eviction, so it
// protects nothing, and with minAvailable instead it would make the only node impossible to drain (R-SNO-3).
//
// Errors: topology.ErrClusterNotRead, ErrName.
func PodDisruptionBudget(name string, cluster topology.Cluster) (*policyv1.PodDisruptionBudget, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	if name != ConsoleName && name != DownloadsName {
		return nil, fmt.Errorf("%w: %q", ErrName, name)
	}
	return shapes.DisruptionBudget(Namespace, name, modeOf(cluster), labels(name)), nil
}
