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
// a cluster with an external control plane, pinned to the control plane where the router belongs there, and with the number of
// routers that the topology of their pool asks for. As in the stock operator the number is written at creation, so that an autoscaler can read it;
// it outlives a change of topology (U-ING-2) unless the operator or this module's controller corrects it.
//
// Errors: ErrNoTopology, ErrPlacement.
func DefaultIngressController(cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource) (*operatorv1.IngressController, error) {
	pool, _, err := RouterPool(cluster, defaultPlacement, source)
	if err != nil {
		return nil, err
	}
	if cluster.ControlPlane.Mode == configv1.ExternalTopologyMode {
		return nil, nil // there is none on such a cluster, which is no error
	}
	ic := &operatorv1.IngressController{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "IngressController"},
		ObjectMeta: metav1.ObjectMeta{Namespace: IngressControllerNamespace, Name: IngressControllerName},
	}
	ic.Spec.Replicas = ptr.To(topology.Replicas(cluster.Governing(pool)))
	if pool == topology.ControlPlanePool {
		ic.Spec.NodePlacement = pinnedPlacement()
	}
	return ic, nil
}

// EffectiveReplicas is the number of routers: what the IngressController says, or else one where the topology of the
// pool where they run is SingleReplica (R-ING-1), and two elsewhere (R-ING-2). Error: ErrHost.
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

// ShapeRouter returns a copy of the router Deployment with everything that depends on the topology set together, so
// that a rollout and a drain can finish (R-SNO-2): replicas, rolling update, anti-affinity, node selector and the
// tolerations that go with it. The pods' labels must already be there, since the anti-affinity selects by the
// Deployment's selector, and a hash over the pod template must be computed afterwards. Error: ErrHost.
func ShapeRouter(router *appsv1.Deployment, h Host) (*appsv1.Deployment, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	shaped := router.DeepCopy()
	replicas := h.effectiveReplicas()
	shaped.Spec.Replicas = ptr.To(replicas)
	shaped.Spec.Strategy = h.strategy()
	pod := &shaped.Spec.Template.Spec
	pod.NodeSelector, pod.Tolerations = h.placement(pod.Tolerations)
	separation := workload.Together
	if h.apart() {
		separation = workload.PerRevision
	}
	workload.Separate(shaped, separation)
	return shaped, nil
}

// RouterStrategy is the rolling update of the router alone, for an operator that does not have the whole Deployment shaped. On a pool that
// is highly available it is the stock operator's, for every number of replicas (U-ING-6):
//
//	topology of the pool  replicas  host network  maxUnavailable  maxSurge
//	SingleReplica         0, 1      yes           1               0         the ports are free when the old router is gone
//	SingleReplica         0, 1      no            0               1         the new router starts beside the old one
//	SingleReplica         2 ...     yes           25%             0         100% on the control plane: one node has the ports once
//	SingleReplica         2 ...     no            25%             25%
//	any other             any       yes           25%             0
//	any other             0 ... 3   no            50%             25%
//	any other             4 ...     no            25%             25%
//
// Error: ErrHost.
func RouterStrategy(h Host) (appsv1.DeploymentStrategy, error) {
	if err := h.made(); err != nil {
		return appsv1.DeploymentStrategy{}, err
	}
	return h.strategy(), nil
}

func (h Host) strategy() appsv1.DeploymentStrategy {
	replicas := h.effectiveReplicas()
	half, quarter := intstr.FromString("50%"), intstr.FromString("25%")
	rollout := topology.Rollout{MaxUnavailable: quarter, MaxSurge: quarter}
	switch single := topology.SingleReplica(h.mode); {
	case single && replicas <= 1:
		rollout = topology.RolloutStrategy(h.mode, h.hostNetwork)
	case h.hostNetwork:
		rollout.MaxSurge = intstr.FromInt32(0)
		if h.onlyNode() {
			// One of them has the ports and the others are Pending, which uses up any smaller number.
			rollout.MaxUnavailable = intstr.FromString("100%")
		}
	case !single && replicas < 4:
		rollout.MaxUnavailable = half
	}
	return workload.RollingUpdate(rollout)
}

// RouterAntiAffinity is the pod anti-affinity of the router alone, or nil where routers may share a node and an operator should have none. labels
// select the router's pods. An operator that tells revisions apart by a label of its own needs only to know whether it is nil.
//
// Error: ErrHost.
func RouterAntiAffinity(h Host, labels map[string]string) (*corev1.PodAntiAffinity, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	if !h.apart() {
		return nil, nil // none is an answer
	}
	return workload.AntiAffinity(workload.PerRevision, labels), nil
}

// apart follows the topology and not the number of routers, so that scaling them starts no rollout. Host ports keep routers apart by
// themselves.
func (h Host) apart() bool {
	return !h.hostNetwork && topology.SpreadRequired(h.mode)
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
// deleted. It has the stock operator's form: 50% where spec.replicas is unset, 1 for two, 25% for more (U-ING-8). But
// there is none over a single pod, and none on the only control-plane node, where it would stop the drain for ever
// (R-SNO-3). labels select the router's pods.
//
// Error: ErrHost.
func RouterPodDisruptionBudget(h Host, labels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	replicas := h.effectiveReplicas()
	if replicas < 2 || h.onlyNode() {
		return nil, nil // no budget is an answer
	}
	maxUnavailable := intstr.FromString("25%")
	switch {
	case h.replicas == nil:
		maxUnavailable = intstr.FromString("50%")
	case replicas == 2:
		maxUnavailable = intstr.FromInt32(1)
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
