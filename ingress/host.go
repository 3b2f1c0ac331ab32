package ingress

import (
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/patch/workload"
	"github.com/solonode/sno/topology"
)

// DefaultIngressController is the default IngressController that an ingress operator should create when there is none: nil on
// a cluster with an external control plane, pinned to the control plane where the router belongs there, otherwise with
// nothing but its name. spec.replicas is left unset on purpose: a number that is written at creation outlives a change of
// topology (facts/upstream.md 1.2), while EffectiveReplicas follows it.
func DefaultIngressController(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource) *operatorv1.IngressController {
	if cluster.ControlPlane.Mode == configv1.ExternalTopologyMode {
		return nil
	}
	ic := &operatorv1.IngressController{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "IngressController"},
		ObjectMeta: metav1.ObjectMeta{Namespace: IngressControllerNamespace, Name: IngressControllerName},
	}
	if pool, _ := RouterPool(cluster, defaultPlacement, source); pool == topology.ControlPlanePool {
		ic.Spec.NodePlacement = pinnedPlacement()
	}
	return ic
}

// Host is what an ingress operator knows about the router that it is about to shape.
type Host struct {
	Cluster topology.Cluster
	// DefaultPlacement is status.defaultPlacement of ingresses.config.openshift.io/cluster; it places a router whose
	// IngressController says nothing, as in the stock operator.
	DefaultPlacement configv1.DefaultPlacement
	// IngressController is the one whose router is shaped. It is only read.
	IngressController *operatorv1.IngressController
}

// Pool is where the router's pods will run: what the IngressController selects, or else the cluster's default placement.
func (h Host) Pool() topology.Pool {
	pool := topology.WorkerPool
	if selector := h.selector(); selector != nil {
		for label := range topology.PlacementOf(topology.ControlPlanePool).NodeSelector() {
			if _, ok := selector[label]; ok {
				pool = topology.ControlPlanePool
			}
		}
		if _, ok := selector[controlPlaneLabel]; ok {
			pool = topology.ControlPlanePool
		}
	} else if h.DefaultPlacement == configv1.DefaultPlacementControlPlane {
		pool = topology.ControlPlanePool
	}
	return h.Cluster.PoolFor(pool)
}

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// selector is the IngressController's own node selector: nil when it has none, empty when it selects every node.
func (h Host) selector() map[string]string {
	placement := h.IngressController.Spec.NodePlacement
	if placement == nil || placement.NodeSelector == nil {
		return nil
	}
	if placement.NodeSelector.MatchLabels == nil {
		return map[string]string{}
	}
	return placement.NodeSelector.MatchLabels
}

// EffectiveReplicas is the number of routers: what the IngressController says, or else what the topology of the pool where
// they run says.
func EffectiveReplicas(h Host) int32 {
	if replicas := h.IngressController.Spec.Replicas; replicas != nil {
		return *replicas
	}
	return topology.Replicas(h.Cluster.Governing(h.Pool()))
}

// hostNetwork tells whether the routers bind ports of their nodes. The strategy in status is the one in effect; before it is
// known, it depends on the platform: without a load balancer, ports of the node are all there is (facts/upstream.md 1.3).
func (h Host) hostNetwork() bool {
	strategy := h.IngressController.Status.EndpointPublishingStrategy
	if strategy == nil {
		strategy = h.IngressController.Spec.EndpointPublishingStrategy
	}
	if strategy == nil {
		return !topology.ProvidesLoadBalancer(h.Cluster.Platform)
	}
	return strategy.Type == operatorv1.HostNetworkStrategyType
}

// ShapeRouter returns a copy of the router Deployment with everything that depends on the topology set together, so that a
// rollout and a drain can finish: replicas, rolling update, anti-affinity, node selector and the tolerations that go with it.
// The pods' labels must already be there, since the anti-affinity selects by the Deployment's selector.
func ShapeRouter(router *appsv1.Deployment, h Host) *appsv1.Deployment {
	shaped := router.DeepCopy()
	replicas := EffectiveReplicas(h)
	pool := h.Pool()
	exclusive := h.hostNetwork()

	shaped.Spec.Replicas = ptr.To(replicas)
	shaped.Spec.Strategy = workload.RollingUpdate(topology.RolloutStrategy(h.rolloutMode(replicas), exclusive))
	pod := &shaped.Spec.Template.Spec
	pod.NodeSelector, pod.Tolerations = h.placement(pool, pod.Tolerations)
	// Host ports keep pods apart by themselves, and one pod has nobody to be kept from.
	separation := workload.Together
	if replicas > 1 && !exclusive && topology.SpreadRequired(h.Cluster.Governing(pool)) {
		separation = workload.PerRevision
	}
	workload.Separate(shaped, separation)
	return shaped
}

// rolloutMode is the topology as far as a rollout is concerned: one router rolls like one router, whoever asked for one.
func (h Host) rolloutMode(replicas int32) configv1.TopologyMode {
	if replicas <= 1 {
		return configv1.SingleReplicaTopologyMode
	}
	mode := h.Cluster.Governing(h.Pool())
	if topology.SingleReplica(mode) {
		// Somebody asked for more routers than the topology has nodes for. Rolling like two of two lets those that
		// run be replaced although the others are Pending.
		return configv1.HighlyAvailableTopologyMode
	}
	return mode
}

// placement is the router's node selector and tolerations. What the IngressController gives replaces the default, as in the
// stock operator, but for one thing: a router on the control plane gets the control plane's tolerations unless the
// IngressController has its own, because pinned must mean schedulable. Of the Deployment's own tolerations only those for the
// control plane come and go with the pool.
func (h Host) placement(pool topology.Pool, present []corev1.Toleration) (map[string]string, []corev1.Toleration) {
	placement := topology.PlacementOf(pool)
	selector := h.selector()
	if selector == nil {
		selector = placement.NodeSelector()
		selector[corev1.LabelOSStable] = string(corev1.Linux)
	} else {
		selector = maps.Clone(selector)
	}
	if custom := h.IngressController.Spec.NodePlacement; custom != nil && custom.Tolerations != nil {
		tolerations := make([]corev1.Toleration, len(custom.Tolerations))
		for i := range custom.Tolerations {
			custom.Tolerations[i].DeepCopyInto(&tolerations[i])
		}
		return selector, tolerations
	}
	return selector, workload.Tolerate(present, pool)
}

// RouterPodDisruptionBudget is the budget for a router, or nil when there must be none and an existing one should be
// deleted. It follows the number of pods, not spec.replicas of the IngressController: a budget over one pod either blocks
// every drain or says nothing (facts/upstream.md 1.4). labels select the router's pods.
func RouterPodDisruptionBudget(h Host, labels map[string]string) *policyv1.PodDisruptionBudget {
	replicas := EffectiveReplicas(h)
	// With one control-plane node there is nowhere else for a second router: its budget would stop that node's drain for ever.
	if replicas < 2 || (h.Pool() == topology.ControlPlanePool && topology.SingleReplica(h.Cluster.ControlPlane.Mode)) {
		return nil
	}
	maxUnavailable := intstr.FromInt32(1)
	if replicas > 3 {
		maxUnavailable = intstr.FromString("25%")
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: RouterNamespace, Name: "router-" + h.IngressController.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &maxUnavailable,
			Selector:       &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			// A pod that is not ready serves nobody; protecting it only blocks the drain that would help.
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}
