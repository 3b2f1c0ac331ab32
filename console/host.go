// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"fmt"
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

// Errors of ShapeDeployment and PodDisruptionBudget.
var (
	ErrDeployment = errors.New("not a Deployment that can be shaped")
	ErrName       = errors.New("not a Deployment of the console; want " + ConsoleName + " or " + DownloadsName)
)

// Pool returns the pool of both Deployments: the control plane, or workers where the control plane is External
// (U-CON-2). Error: topology.ErrClusterNotRead.
func Pool(cluster topology.Cluster) (topology.Pool, error) {
	if err := cluster.Validate(); err != nil {
		return "", err
	}
	return poolOf(cluster), nil
}

func poolOf(cluster topology.Cluster) topology.Pool {
	return cluster.PoolFor(topology.ControlPlanePool)
}

// modeOf returns the topology of the pool. Using another one was wrong upstream in both directions (U-CON-5): two
// replicas pinned to one node, and anti-affinity that one worker cannot satisfy.
func modeOf(cluster topology.Cluster) configv1.TopologyMode {
	return cluster.Governing(poolOf(cluster))
}

// ShapeDeployment returns a copy of the console or downloads Deployment with replicas, rollout and placement for the
// topology of Pool (R-SNO-2, R-CON-1, R-CON-3, U-CON-1), see the package's documentation. Before every write, pass it
// and the live Deployment to workload.UnblockRollout. Errors: topology.ErrClusterNotRead, ErrDeployment.
func ShapeDeployment(deployment *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	if deployment == nil {
		return nil, fmt.Errorf("%w: it is nil", ErrDeployment)
	}
	if selector := deployment.Spec.Selector; selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil, fmt.Errorf("%w: %s/%s has no spec.selector", ErrDeployment, deployment.Namespace, deployment.Name)
	}
	return shape(deployment, cluster), nil
}

func shape(deployment *appsv1.Deployment, cluster topology.Cluster) *appsv1.Deployment {
	mode, separation := modeOf(cluster), workload.SeparateNever
	quarter := intstr.FromString("25%")
	rollout := topology.Rollout{MaxUnavailable: quarter, MaxSurge: quarter} // as upstream: for one replica 0 and 1
	if !topology.SingleReplica(mode) {
		rollout = topology.Rollout{MaxUnavailable: intstr.FromInt32(1), MaxSurge: intstr.FromInt32(3)}
	}
	if topology.SpreadRequired(mode) {
		separation = workload.SeparateAlways
	}
	shaped := deployment.DeepCopy()
	workload.Roll(shaped, topology.Replicas(mode), rollout)
	place(&shaped.Spec.Template.Spec, poolOf(cluster))
	workload.Separate(shaped, separation, otherPods(deployment)...)
	return shaped
}

// otherPods returns the labels of the pods that may share a node with those of the Deployment.
func otherPods(deployment *appsv1.Deployment) []labels.Set {
	var others []labels.Set
	for _, name := range []string{ConsoleName, DownloadsName} {
		if pods := podLabels(name); !labels.SelectorFromSet(pods).Matches(labels.Set(deployment.Spec.Template.Labels)) {
			others = append(others, pods)
		}
	}
	return others
}

// place pins the pods to the control plane. With an External one they select no role, because every node is a worker.
func place(pod *corev1.PodSpec, pool topology.Pool) {
	if pool == topology.ControlPlanePool {
		workload.Place(pod, pool)
		return
	}
	pod.NodeSelector = maps.Clone(pod.NodeSelector)
	delete(pod.NodeSelector, "node-role.kubernetes.io/master")
	delete(pod.NodeSelector, "node-role.kubernetes.io/control-plane")
	if len(pod.NodeSelector) == 0 {
		pod.NodeSelector = nil
	}
	pod.Tolerations = workload.Tolerate(pod.Tolerations, pool)
}

// PodDisruptionBudget returns the budget of ConsoleName or DownloadsName, or nil where the topology of Pool is
// SingleReplica and an existing budget is to be deleted (R-SNO-3). The stock operator keeps one with maxUnavailable 1,
// which has no effect there (U-CON-4). Errors: topology.ErrClusterNotRead, ErrName.
func PodDisruptionBudget(name string, cluster topology.Cluster) (*policyv1.PodDisruptionBudget, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	if name != ConsoleName && name != DownloadsName {
		return nil, fmt.Errorf("%w: %q", ErrName, name)
	}
	return workload.DisruptionBudget(Namespace, name, modeOf(cluster), podLabels(name)), nil
}
