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
//
// Errors: ErrNoTopology, ErrPlacement.
func DefaultIngressController(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource) (*operatorv1.IngressController, error) {
	pool, _, err := RouterPool(cluster, defaultPlacement, source)
	if err != nil {
		return nil, err
	}
	if cluster.ControlPlane.Mode == configv1.ExternalTopologyMode {
		return nil, nil //nolint:nilnil // there is none on such a cluster, which is no error
	}
	ic := &operatorv1.IngressController{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "IngressController"},
		ObjectMeta: metav1.ObjectMeta{Namespace: IngressControllerNamespace, Name: IngressControllerName},
	}
	if pool == topology.ControlPlanePool {
		ic.Spec.NodePlacement = pinnedPlacement()
	}
	return ic, nil
}

// EffectiveReplicas is the number of routers: what the IngressController says, or else what the topology of the pool where
// they run says.
func EffectiveReplicas(h Host) (int32, error) {
	if err := h.made(); err != nil {
		return 0, err
	}
	return h.effectiveReplicas(), nil
}

func (h Host) effectiveReplicas() int32 {
	if h.replicas != nil {
		return *h.replicas
	}
	return topology.Replicas(h.mode)
}

// ShapeRouter returns a copy of the router Deployment with everything that depends on the topology set together, so that a
// rollout and a drain can finish: replicas, rolling update, anti-affinity, node selector and the tolerations that go with it.
// The pods' labels must already be there, since the anti-affinity selects by the Deployment's selector.
func ShapeRouter(router *appsv1.Deployment, h Host) (*appsv1.Deployment, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	shaped := router.DeepCopy()
	replicas := h.effectiveReplicas()
	shaped.Spec.Replicas = ptr.To(replicas)
	shaped.Spec.Strategy = workload.RollingUpdate(topology.RolloutStrategy(h.rolloutMode(replicas), h.hostNetwork))
	pod := &shaped.Spec.Template.Spec
	pod.NodeSelector, pod.Tolerations = h.placement(pod.Tolerations)
	// Host ports keep pods apart by themselves, and one pod has nobody to be kept from.
	separation := workload.Together
	if replicas > 1 && !h.hostNetwork && topology.SpreadRequired(h.mode) {
		separation = workload.PerRevision
	}
	workload.Separate(shaped, separation)
	return shaped, nil
}

// rolloutMode is the topology as far as a rollout is concerned: one router rolls like one router, whoever asked for one.
func (h Host) rolloutMode(replicas int32) configv1.TopologyMode {
	if replicas <= 1 {
		return configv1.SingleReplicaTopologyMode
	}
	if topology.SingleReplica(h.mode) {
		// Somebody asked for more routers than the topology has nodes for. Rolling like two of two lets those that
		// run be replaced although the others are Pending.
		return configv1.HighlyAvailableTopologyMode
	}
	return h.mode
}

// placement is the router's node selector and tolerations. What the IngressController gives replaces the default, as in the
// stock operator, but for one thing: a router on the control plane gets the control plane's tolerations unless the
// IngressController has its own, because pinned must mean schedulable. Of the Deployment's own tolerations only those for the
// control plane come and go with the pool.
func (h Host) placement(present []corev1.Toleration) (map[string]string, []corev1.Toleration) {
	selector := maps.Clone(h.selector)
	if selector == nil {
		selector = topology.PlacementOf(h.pool).NodeSelector()
		selector[corev1.LabelOSStable] = string(corev1.Linux)
	}
	if h.tolerations != nil {
		tolerations := make([]corev1.Toleration, len(h.tolerations))
		for i := range h.tolerations {
			h.tolerations[i].DeepCopyInto(&tolerations[i])
		}
		return selector, tolerations
	}
	return selector, workload.Tolerate(present, h.pool)
}

// RouterPodDisruptionBudget is the budget for a router, or nil when there must be none and an existing one should be
// deleted. It follows the number of pods, not spec.replicas of the IngressController: a budget over one pod either blocks
// every drain or says nothing (facts/upstream.md 1.4). labels select the router's pods.
func RouterPodDisruptionBudget(h Host, labels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	replicas := h.effectiveReplicas()
	// With one control-plane node there is nowhere else for a second router: its budget would stop that node's drain for ever.
	if replicas < 2 || h.onlyNode() {
		return nil, nil //nolint:nilnil // no budget is an answer
	}
	maxUnavailable := intstr.FromInt32(1)
	if replicas > 3 {
		maxUnavailable = intstr.FromString("25%")
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: RouterNamespace, Name: "router-" + h.name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &maxUnavailable,
			Selector:       &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			// A pod that is not ready serves nobody; protecting it only blocks the drain that would help.
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}, nil
}

// onlyNode tells whether all routers must run on one node. A pool of workers may have more nodes than its topology says.
func (h Host) onlyNode() bool {
	return h.pool == topology.ControlPlanePool && topology.SingleReplica(h.cluster.ControlPlane.Mode)
}
