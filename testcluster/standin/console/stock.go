// SPDX-License-Identifier: Apache-2.0

package console

import (
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

// The rules of the stock operator (U-CON-1, U-CON-2, U-CON-4), with their faults: a topology that is empty or unknown
// means one replica, a single pod has a budget, two nodes get three surge pods that cannot start, and the control-plane
// key of the taint is not tolerated.

// stockDeploysHA uses the values of the Infrastructure without a default for unknown ones.
func stockDeploysHA(cluster topology.Cluster) bool {
	switch cluster.ControlPlane.Reported {
	case configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode:
		return true
	case configv1.ExternalTopologyMode:
		return cluster.Infrastructure.Reported == configv1.HighlyAvailableTopologyMode
	case configv1.SingleReplicaTopologyMode:
		return false
	default:
		return false
	}
}

func stockShape(base *appsv1.Deployment, cluster topology.Cluster) (*appsv1.Deployment, *policyv1.PodDisruptionBudget) {
	shaped := base.DeepCopy()
	pod := &shaped.Spec.Template.Spec
	if stockDeploysHA(cluster) {
		shaped.Spec.Replicas = ptr.To[int32](2)
		shaped.Spec.Strategy = standin.RollingUpdate(intstr.FromInt32(1), intstr.FromInt32(3))
		pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: "component", Operator: metav1.LabelSelectorOpIn, Values: []string{base.Spec.Selector.MatchLabels["component"]},
				}}},
				TopologyKey: corev1.LabelHostname,
			}},
		}}
	} else {
		shaped.Spec.Replicas = ptr.To[int32](1)
		shaped.Spec.Strategy = standin.RollingUpdate(intstr.FromString("25%"), intstr.FromString("25%"))
		pod.Affinity = &corev1.Affinity{}
	}
	if cluster.ControlPlane.Reported == configv1.ExternalTopologyMode {
		delete(pod.NodeSelector, masterRole)
	}
	return shaped, standin.Budget(base.Namespace, base.Name, base.Spec.Selector.MatchLabels, intstr.FromInt32(1))
}
