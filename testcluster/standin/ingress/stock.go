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

	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

// Today's rules, with their faults: nothing is pinned unless defaultPlacement is set, a pinned router does not tolerate
// the taint of its node, and the budget follows spec.replicas instead of the number of pods. The hash label of
// ReplicaSets replaces the operator's own.
const (
	masterRole       = "node-role.kubernetes.io/master"
	workerRole       = "node-role.kubernetes.io/worker"
	remoteWorkerRole = "node.openshift.io/remote-worker"
	evictionTaint    = "kubernetes.io/e2e-evict-taint-key"
)

// stockReplicas is U-ING-1: by the infrastructure topology, or by the control plane's if defaultPlacement is
// ControlPlane.
func stockReplicas(cluster topology.Cluster, placement configv1.DefaultPlacement) int32 {
	mode := cluster.Infrastructure.Mode
	if placement == configv1.DefaultPlacementControlPlane {
		mode = cluster.ControlPlane.Mode
	}
	if mode == configv1.SingleReplicaTopologyMode {
		return 1
	}
	return 2
}

// stockDefaultIngressController is U-ING-2: only the replicas, permanently.
func stockDefaultIngressController(cluster topology.Cluster, placement configv1.DefaultPlacement) *operatorv1.IngressController {
	if cluster.ControlPlane.Mode == configv1.ExternalTopologyMode {
		return nil
	}
	return &operatorv1.IngressController{
		ObjectMeta: metav1.ObjectMeta{Namespace: ingress.IngressControllerNamespace, Name: ingress.IngressControllerName},
		Spec:       operatorv1.IngressControllerSpec{Replicas: ptr.To(stockReplicas(cluster, placement))},
	}
}

func stockShape(router *appsv1.Deployment, in inputs) (*appsv1.Deployment, *policyv1.PodDisruptionBudget, error) {
	shaped := router.DeepCopy()
	ic := in.ic
	replicas := stockReplicas(in.cluster, in.placement)
	single := replicas == 1
	if ic.Spec.Replicas != nil {
		replicas = *ic.Spec.Replicas
	}
	shaped.Spec.Replicas = &replicas

	pod := &shaped.Spec.Template.Spec
	if err := stockPlace(pod, in); err != nil {
		return nil, nil, err
	}
	labels := shaped.Spec.Selector.MatchLabels
	switch {
	case pod.HostNetwork:
		shaped.Spec.Strategy = standin.RollingUpdate(intstr.FromString("25%"), intstr.FromInt32(0))
	case single:
		shaped.Spec.Strategy = standin.RollingUpdate(intstr.FromString("25%"), intstr.FromString("25%"))
	default:
		maxUnavailable := intstr.FromString("25%")
		if replicas < 4 {
			maxUnavailable = intstr.FromString("50%")
		}
		shaped.Spec.Strategy = standin.RollingUpdate(maxUnavailable, intstr.FromString("25%"))
		stockSpread(pod, labels)
	}
	return shaped, stockBudget(ic, labels), nil
}

// stockPlace is U-ING-4. It does not tolerate the control plane's taints.
func stockPlace(pod *corev1.PodSpec, in inputs) error {
	pod.NodeSelector = map[string]string{corev1.LabelOSStable: string(corev1.Linux)}
	if in.placement == configv1.DefaultPlacementControlPlane {
		pod.NodeSelector[masterRole] = ""
	} else {
		pod.NodeSelector[workerRole] = ""
		pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: remoteWorkerRole, Operator: corev1.NodeSelectorOpNotIn, Values: []string{""}}},
			}}},
		}}
	}
	pod.Tolerations = []corev1.Toleration{{Key: evictionTaint, Operator: corev1.TolerationOpEqual, Value: "evictTaintVal", Effect: corev1.TaintEffectNoExecute}}
	custom := in.ic.Spec.NodePlacement
	if custom == nil {
		return nil
	}
	if custom.NodeSelector != nil {
		selector, err := metav1.LabelSelectorAsMap(custom.NodeSelector)
		if err != nil {
			return fmt.Errorf("IngressController %s has an invalid spec.nodePlacement.nodeSelector: %w", in.ic.Name, err)
		}
		pod.NodeSelector = selector
	}
	if custom.Tolerations != nil {
		pod.Tolerations = custom.DeepCopy().Tolerations
	}
	return nil
}

// stockSpread separates routers of one revision and prefers nodes that run one of another.
func stockSpread(pod *corev1.PodSpec, labels map[string]string) {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	revision := []string{appsv1.DefaultDeploymentUniqueLabelKey}
	pod.Affinity.PodAffinity = &corev1.PodAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}, MismatchLabelKeys: revision, TopologyKey: corev1.LabelHostname,
		}}},
	}
	pod.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)}, MatchLabelKeys: revision, TopologyKey: corev1.LabelHostname,
		}},
	}
}

// stockBudget is U-ING-8: it follows spec.replicas, and if that is unset there is a budget for any number of pods.
func stockBudget(ic *operatorv1.IngressController, labels map[string]string) *policyv1.PodDisruptionBudget {
	maxUnavailable := intstr.FromString("50%")
	if replicas := ic.Spec.Replicas; replicas != nil {
		switch {
		case *replicas < 2:
			return nil
		case *replicas == 2:
			maxUnavailable = intstr.FromInt32(1)
		default:
			maxUnavailable = intstr.FromString("25%")
		}
	}
	return standin.Budget(ingress.RouterNamespace, routerName(ic.Name), labels, maxUnavailable)
}
