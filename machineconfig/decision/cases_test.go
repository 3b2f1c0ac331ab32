// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	mcfgv1ac "github.com/openshift/client-go/machineconfiguration/applyconfigurations/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solonode/sno/machineconfig/decision"
	"github.com/solonode/sno/patch"
)

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

func reasonOf(result *patch.Result) string {
	if result == nil {
		return ""
	}
	return result.Reason
}

func updating(p *mcfgv1.MachineConfigPool) {
	p.Status.Conditions[0].Status, p.Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionTrue
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
