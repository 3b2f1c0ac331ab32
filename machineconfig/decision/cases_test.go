// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	mcfgv1ac "github.com/openshift/client-go/machineconfiguration/applyconfigurations/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
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

func clusterOf(controlPlane configv1.TopologyMode) *topology.Cluster {
	return &topology.Cluster{ControlPlane: topology.ReadingOf(controlPlane), Infrastructure: topology.ReadingOf(sr), Platform: configv1.NonePlatformType}
}

const fieldOwner, stock, person = "sno.solonode.github.io/machineconfig", "machine-config-controller", "oc"

const (
	specJSON       = `{"f:spec":{"f:kubeletConfig":{"f:shutdownGracePeriod":{}}}}`
	annotationJSON = `{"f:metadata":{"f:annotations":{"f:machineconfiguration.openshift.io/controlPlaneTopology":{}}}}`
	finalizerJSON  = `{"f:metadata":{"f:finalizers":{".":{},"v:\"99-master-generated-kubelet\"":{}}}}`
)

func entry(manager, fields string) metav1.ManagedFieldsEntry {
	operation := metav1.ManagedFieldsOperationUpdate
	if manager == fieldOwner {
		operation = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
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

func windows(n corev1.Node) corev1.Node {
	n.Labels[corev1.LabelOSStable] = "windows"
	return n
}

func reasonOf(result *patch.Result) string {
	if result == nil {
		return ""
	}
	return result.Reason
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

func paused(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }

func updating(p *mcfgv1.MachineConfigPool) {
	p.Status.Conditions[0].Status, p.Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionTrue
}

// pod returns a pod with a termination grace period in seconds.
func pod(node string, critical bool, grace int64) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = node, ptr.To(grace)
	if critical {
		p.Spec.Priority = ptr.To[int32](2_000_000_000)
	}
	return p
}

func kubeletConfig(name, forPool, manager, configuration string, change ...func(*mcfgv1.KubeletConfig)) mcfgv1.KubeletConfig {
	c := mcfgv1.KubeletConfig{ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: []metav1.ManagedFieldsEntry{entry(manager, specJSON), entry(stock, finalizerJSON)}}}
	c.Spec.MachineConfigPoolSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pools.operator.machineconfiguration.openshift.io/" + forPool: ""}}
	c.Spec.KubeletConfig = &runtime.RawExtension{Raw: []byte(configuration)}
	for _, f := range change {
		f(&c)
	}
	return c
}

func periods(total, critical string) string {
	return `{"shutdownGracePeriodCriticalPods": "` + critical + `", "shutdownGracePeriod": "` + total + `"}`
}

func deletes(d decision.Decision) bool { return d.MachineConfig.Delete || d.KubeletConfig.Delete }

func kubeletConfigOf(d decision.Decision) *mcfgv1ac.KubeletConfigApplyConfiguration {
	return d.KubeletConfig.Intent.(*mcfgv1ac.KubeletConfigApplyConfiguration)
}

func machineConfigOf(d decision.Decision) *mcfgv1ac.MachineConfigApplyConfiguration {
	return d.MachineConfig.Intent.(*mcfgv1ac.MachineConfigApplyConfiguration)
}
