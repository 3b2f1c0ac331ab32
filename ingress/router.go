// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"fmt"
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
	"github.com/solonode/sno/topology/workload"
)

// DefaultIngressController returns the default IngressController that an ingress operator creates when there is none,
// nil with an External control plane. As with the stock operator, the number of routers does not follow later changes
// of the topology (U-ING-2). Errors: topology.ErrClusterNotRead, ErrPlacement.
func DefaultIngressController(
	cluster topology.Cluster, defaultPlacement configv1.DefaultPlacement, source PlacementSource,
) (*operatorv1.IngressController, error) {
	pool, _, err := RouterPool(cluster, defaultPlacement, source)
	if err != nil {
		return nil, err
	}
	if cluster.ControlPlane.Mode == configv1.ExternalTopologyMode {
		return nil, nil
	}
	ic := &operatorv1.IngressController{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "IngressController"},
		ObjectMeta: metav1.ObjectMeta{Namespace: IngressControllerNamespace, Name: IngressControllerName},
	}
	ic.Spec.Replicas = ptr.To(topology.Replicas(cluster.Governing(pool)))
	if pool == topology.ControlPlanePool {
		ic.Spec.NodePlacement = PinnedPlacement()
	}
	return ic, nil
}

// PinnedPlacement returns the placement that pins the router to the control plane, with the tolerations that it needs
// there with day-1 workers (U-ING-5).
func PinnedPlacement() *operatorv1.NodePlacement {
	placement := topology.PlacementOf(topology.ControlPlanePool)
	return &operatorv1.NodePlacement{
		NodeSelector: &metav1.LabelSelector{MatchLabels: placement.NodeSelector()},
		Tolerations:  workload.Tolerations(placement),
	}
}

// replicas returns the number of routers: spec.replicas, or else one where the topology of their pool is SingleReplica
// (R-ING-1), and two elsewhere (R-ING-2).
func (h Host) replicas() int32 {
	return ptr.Deref(h.spec.Replicas, topology.Replicas(h.mode))
}

// ShapeRouter returns a copy of the router Deployment whose replicas, rolling update, anti-affinity, node selector and
// tolerations follow the topology, so that rollouts and drains finish (R-SNO-2). Set the selector and the pods' labels
// before, and compute a hash over the pod template afterwards. Errors: ErrHost, and ErrSharedHostPorts after
// WithSharedHostPorts.
func ShapeRouter(router *appsv1.Deployment, h Host) (*appsv1.Deployment, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	shaped := router.DeepCopy()
	workload.Roll(shaped, h.replicas(), h.rollout())
	pod := &shaped.Spec.Template.Spec
	pod.NodeSelector, pod.Tolerations = h.placement(pod.Tolerations)
	if h.sharesPorts() {
		if err := sharePorts(pod); err != nil {
			return nil, fmt.Errorf("shape Deployment %s/%s: %w", router.Namespace, router.Name, err)
		}
	}
	separation := workload.SeparateNever
	if h.separated() {
		separation = workload.SeparatePerRevision
	}
	workload.Separate(shaped, separation)
	return shaped, nil
}

// rollout returns the stock operator's rolling update (U-ING-6), except for several routers with host ports on a node.
// On SingleReplica one router is replaced before its successor starts if it has host ports that it does not share, and
// after it otherwise.
func (h Host) rollout() topology.Rollout {
	replicas, quarter := h.replicas(), intstr.FromString("25%")
	rollout := topology.Rollout{MaxUnavailable: quarter, MaxSurge: quarter}
	switch single := topology.SingleReplica(h.mode); {
	case h.sharesPorts():
	case h.hostNetwork:
		rollout.MaxSurge = intstr.FromInt32(0)
		if h.onlyNode() && replicas > 1 {
			// One router has the ports. The others are Pending and use up any smaller number.
			rollout.MaxUnavailable = intstr.FromString("100%")
		}
	case !single && replicas < 4:
		rollout.MaxUnavailable = intstr.FromString("50%")
	}
	return rollout
}

// separated reports whether routers have anti-affinity. It ignores their number, so that scaling starts no rollout.
func (h Host) separated() bool {
	return !h.hostNetwork && topology.SpreadRequired(h.mode)
}

// placement returns the router's node selector and tolerations, from the IngressController if it has them. Else only a
// router on the control plane tolerates the taints of the control plane.
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

// RouterPodDisruptionBudget returns the budget for the router's pods with the labels, or nil where an existing one is
// to be deleted: for a single pod, and on the only control-plane node, whose drain would not finish (R-SNO-3). As in
// the stock operator, it allows 50% where spec.replicas is unset, 1 of two, and 25% of more (U-ING-8). Error: ErrHost.
func RouterPodDisruptionBudget(h Host, labels map[string]string) (*policyv1.PodDisruptionBudget, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	replicas := h.replicas()
	if replicas < 2 || h.onlyNode() {
		return nil, nil
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

// onlyNode reports whether all routers run on one node. A SingleReplica pool of workers may have several nodes.
func (h Host) onlyNode() bool {
	return h.pool == topology.ControlPlanePool && topology.SingleReplica(h.mode)
}
