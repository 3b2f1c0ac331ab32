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

// DefaultIngressController returns the default IngressController that an ingress operator should create when there is none: pinned to the
// control plane where the router belongs there, with the number of routers that the topology of their pool asks for, and nil with an
// External control plane. As in the stock operator, the number outlives a change of topology (U-ING-2) unless somebody corrects it.
//
// Errors: topology.ErrClusterNotRead, ErrPlacement.
func DefaultIngressController(
	cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource,
) (*operatorv1.IngressController, error) {
	pool, _, err := RouterPool(cluster, defaultPlacement, source)
	if err != nil {
		return nil, err
	}
	if cluster.ControlPlane.Mode == configv1.ExternalTopologyMode {
		return nil, nil // none is an answer
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

// EffectiveReplicas returns the number of routers: the IngressController's, or else one where the topology of the pool where they run is
// SingleReplica (R-ING-1), and two elsewhere (R-ING-2). Error: ErrHost.
func EffectiveReplicas(h Host) (int32, error) {
	if err := h.made(); err != nil {
		return 0, err
	}
	return h.replicas(), nil
}

func (h Host) replicas() int32 {
	return ptr.Deref(h.spec.Replicas, topology.Replicas(h.mode))
}

// ShapeRouter returns a copy of the router Deployment with everything that depends on the topology, so that a rollout and a drain can
// finish (R-SNO-2): replicas, rolling update, anti-affinity by the Deployment's selector, node selector and its tolerations. Set the
// pods' labels before, and compute a hash over the pod template afterwards. Error: ErrHost.
func ShapeRouter(router *appsv1.Deployment, h Host) (*appsv1.Deployment, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	shaped := router.DeepCopy()
	shaped.Spec.Replicas = ptr.To(h.replicas())
	shaped.Spec.Strategy = h.strategy()
	pod := &shaped.Spec.Template.Spec
	pod.NodeSelector, pod.Tolerations = h.placement(pod.Tolerations)
	separation := workload.SeparateNever
	if h.apart() {
		separation = workload.SeparatePerRevision
	}
	workload.Separate(shaped, separation)
	return shaped, nil
}

// RouterStrategy returns the rolling update alone. On a pool that is highly available it is the stock operator's (U-ING-6). One router on
// SingleReplica ends before its successor where it has host ports, else after it. Error: ErrHost.
func RouterStrategy(h Host) (appsv1.DeploymentStrategy, error) {
	if err := h.made(); err != nil {
		return appsv1.DeploymentStrategy{}, err
	}
	return h.strategy(), nil
}

func (h Host) strategy() appsv1.DeploymentStrategy {
	replicas, quarter := h.replicas(), intstr.FromString("25%")
	rollout := topology.Rollout{MaxUnavailable: quarter, MaxSurge: quarter}
	switch single := topology.SingleReplica(h.mode); {
	case single && replicas <= 1:
		rollout = topology.RolloutStrategy(h.mode, h.hostNetwork)
	case h.hostNetwork:
		rollout.MaxSurge = intstr.FromInt32(0)
		if h.onlyNode() {
			// One router has the ports and the others are Pending, which uses up any smaller number.
			rollout.MaxUnavailable = intstr.FromString("100%")
		}
	case !single && replicas < 4:
		rollout.MaxUnavailable = intstr.FromString("50%")
	}
	return workload.RollingUpdate(rollout)
}

// RouterAntiAffinity returns the pod anti-affinity alone, or nil where routers may share a node. labels select the router's pods.
// Error: ErrHost.
func RouterAntiAffinity(h Host, labels map[string]string) (*corev1.PodAntiAffinity, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	if !h.apart() {
		return nil, nil // none is an answer
	}
	return workload.AntiAffinity(workload.SeparatePerRevision, labels), nil
}

// apart reports whether routers need anti-affinity. It ignores their number, so that scaling them starts no rollout.
func (h Host) apart() bool {
	return !h.hostNetwork && topology.SpreadRequired(h.mode)
}

// placement returns the router's node selector and tolerations. As in the stock operator the IngressController's replace the default. But
// a router on the control plane gets the control plane's tolerations where the IngressController has none, and no router elsewhere
// keeps them.
func (h Host) placement(present []corev1.Toleration) (map[string]string, []corev1.Toleration) {
	selector := maps.Clone(h.selector)
	if selector == nil {
		selector = topology.PlacementOf(h.pool).NodeSelector()
		selector[corev1.LabelOSStable] = string(corev1.Linux)
	}
	if custom := h.spec.NodePlacement.DeepCopy(); custom != nil && custom.Tolerations != nil {
		return selector, custom.Tolerations
	}
	return selector, workload.Tolerate(present, h.pool)
}

// RouterPodDisruptionBudget returns the budget for a router, or nil when an existing one should be deleted: over a single pod, and on the
// only control-plane node, whose drain could not end (R-SNO-3). It has the stock operator's form: 50% where spec.replicas is unset, 1 for
// two, 25% for more (U-ING-8). labels select the router's pods. Error: ErrHost.
func RouterPodDisruptionBudget(h Host, labels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	if err := h.made(); err != nil {
		return nil, err
	}
	replicas := h.replicas()
	if replicas < 2 || h.onlyNode() {
		return nil, nil // none is an answer
	}
	maxUnavailable := intstr.FromString("25%")
	switch {
	case h.spec.Replicas == nil:
		maxUnavailable = intstr.FromString("50%")
	case replicas == 2:
		maxUnavailable = intstr.FromInt32(1)
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: RouterNamespace, Name: "router-" + h.name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             &maxUnavailable,
			Selector:                   &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}, nil
}

// onlyNode reports whether all routers run on one node. A pool of workers may have more nodes than its topology suggests.
func (h Host) onlyNode() bool {
	return h.pool == topology.ControlPlanePool && topology.SingleReplica(h.mode)
}
