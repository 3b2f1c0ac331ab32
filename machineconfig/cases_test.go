// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/topology"
)

const (
	sr       = configv1.SingleReplicaTopologyMode
	ha       = configv1.HighlyAvailableTopologyMode
	arbiter  = configv1.HighlyAvailableArbiterMode
	dual     = configv1.DualReplicaTopologyMode
	external = configv1.ExternalTopologyMode
	empty    = configv1.TopologyMode("")
	unknown  = configv1.TopologyMode("Quantum")
)

var allModes = []configv1.TopologyMode{ha, arbiter, sr, dual, external, empty, unknown}

func clusterOf(controlPlane configv1.TopologyMode) *topology.Cluster {
	return &topology.Cluster{ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(sr), Platform: configv1.NonePlatformType}
}

// node returns a ready node with the roles.
func node(name string, roles ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-node", Labels: map[string]string{}}}
	for _, role := range roles {
		n.Labels["node-role.kubernetes.io/"+role] = ""
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func notReady(n corev1.Node) corev1.Node {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	return n
}

func windows(n corev1.Node) corev1.Node {
	n.Labels[corev1.LabelOSStable] = "windows"
	return n
}

func pointers[T any](items []T) []*T {
	to := make([]*T, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}

func annotated(n corev1.Node, annotations map[string]string) corev1.Node {
	n.Annotations = maps.Clone(annotations)
	return n
}

func pool(name string, change ...func(*mcfgv1.MachineConfigPool)) mcfgv1.MachineConfigPool {
	p := mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pools.operator.machineconfiguration.openshift.io/" + name: ""}}}
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}}
	p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
		{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}, {Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionFalse},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func withMaxUnavailable(value string) func(*mcfgv1.MachineConfigPool) {
	return func(p *mcfgv1.MachineConfigPool) {
		if value != "" {
			p.Spec.MaxUnavailable = ptr.To(intstr.Parse(value))
		}
	}
}

func paused(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }

// pod returns a pod with a termination grace period in seconds.
func pod(node string, critical bool, grace int64) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = node, ptr.To(grace)
	if critical {
		p.Spec.Priority = ptr.To[int32](2_000_000_000)
	}
	return p
}
