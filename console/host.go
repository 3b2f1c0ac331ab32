package console

import (
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"

	shapes "github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

const (
	masterRole       = "node-role.kubernetes.io/master"
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
)

// Pool is where the pods of both Deployments run: on the control plane, or on workers where there is none.
func Pool(cluster topology.Cluster) topology.Pool { return cluster.PoolFor(topology.ControlPlanePool) }

// Mode is the topology that decides for both Deployments: that of the control plane, and with an External one that of the
// infrastructure. Choosing by anything but where the pods run went wrong upstream in both directions: two replicas pinned to
// one node (OCPBUGS-27335), and anti-affinity that one worker cannot satisfy (console-operator issue 656).
func Mode(cluster topology.Cluster) configv1.TopologyMode { return cluster.Governing(Pool(cluster)) }

// Replicas is the number of pods of either Deployment: 1 where Mode is SingleReplica, else 2.
func Replicas(cluster topology.Cluster) int32 { return topology.Replicas(Mode(cluster)) }

// ShapeDeployment returns a copy of the console or downloads Deployment with everything that depends on the topology set
// together, so that a rollout and a drain can finish: replicas, rolling update, pod anti-affinity, and a node selector and
// tolerations that agree. Everything else stays: node and pod affinity, other keys of the selector, other tolerations. nil
// gives nil.
//
//	Mode            replicas  maxUnavailable / maxSurge  required anti-affinity
//	SingleReplica   1         0 / 1                      none
//	all others      2         1 / 1                      per node and revision
//
// Neither Deployment has host ports, so on one node the new pod starts beside the old one and nothing is down meanwhile.
func ShapeDeployment(deployment *appsv1.Deployment, cluster topology.Cluster) *appsv1.Deployment {
	if deployment == nil {
		return nil
	}
	shaped := deployment.DeepCopy()
	mode := Mode(cluster)
	shaped.Spec.Replicas = ptr.To(topology.Replicas(mode))
	shaped.Spec.Strategy = shapes.RollingUpdate(topology.RolloutStrategy(mode, false))

	pod := &shaped.Spec.Template.Spec
	pod.NodeSelector = selectorFor(Pool(cluster), pod.NodeSelector)
	pod.Tolerations = tolerationsFor(Pool(cluster), pod.Tolerations)
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	pod.Affinity.PodAntiAffinity = nil
	if topology.SpreadRequired(mode) {
		pod.Affinity.PodAntiAffinity = shapes.SpreadOverNodes(podLabels(deployment)).PodAntiAffinity
	}
	if pod.Affinity.NodeAffinity == nil && pod.Affinity.PodAffinity == nil && pod.Affinity.PodAntiAffinity == nil {
		pod.Affinity = nil
	}
	return shaped
}

// podLabels select the Deployment's own pods. Without any, an anti-affinity term would keep console and downloads apart.
func podLabels(deployment *appsv1.Deployment) map[string]string {
	if selector := deployment.Spec.Selector; selector != nil && len(selector.MatchLabels) > 0 {
		return maps.Clone(selector.MatchLabels)
	}
	return labels(deployment.Name)
}

// selectorFor keeps what the selector says beside the role of control-plane nodes.
func selectorFor(pool topology.Pool, present map[string]string) map[string]string {
	selector := map[string]string{}
	maps.Copy(selector, present)
	if pool == topology.ControlPlanePool {
		maps.Copy(selector, topology.PlacementOf(pool).NodeSelector())
	} else {
		delete(selector, masterRole)
		delete(selector, controlPlaneRole)
	}
	if len(selector) == 0 {
		return nil
	}
	return selector
}

// tolerationsFor adds those for the control plane that are missing, or removes them. What is there keeps its place: another
// order would be another pod template, and a rollout for nothing.
func tolerationsFor(pool topology.Pool, present []corev1.Toleration) []corev1.Toleration {
	controlPlane := shapes.Tolerations(topology.PlacementOf(topology.ControlPlanePool))
	if pool != topology.ControlPlanePool {
		return slices.DeleteFunc(slices.Clone(present), func(t corev1.Toleration) bool {
			return slices.ContainsFunc(controlPlane, func(c corev1.Toleration) bool { return t.MatchToleration(&c) })
		})
	}
	tolerations := slices.Clone(present)
	for _, c := range controlPlane {
		if !slices.ContainsFunc(present, func(t corev1.Toleration) bool { return t.MatchToleration(&c) }) {
			tolerations = append(tolerations, c)
		}
	}
	return tolerations
}

// PodDisruptionBudget is the budget over the pods of the Deployment with that name, ConsoleName or DownloadsName, or nil when
// there must be none and an existing one should be deleted: where Mode is SingleReplica. The stock operator keeps one with
// maxUnavailable 1 in every topology (facts/upstream.md section 4); over one pod that allows every eviction, so it
// protects nothing, and with minAvailable instead it would make the only node impossible to drain.
func PodDisruptionBudget(name string, cluster topology.Cluster) *policyv1.PodDisruptionBudget {
	return shapes.DisruptionBudget(Namespace, name, Mode(cluster), labels(name))
}
