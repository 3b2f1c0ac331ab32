// SPDX-License-Identifier: Apache-2.0

package checks_test

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

func unstructuredKubeletConfig() unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": map[string]any{"name": "graceful"},
		"spec": map[string]any{
			"kubeletConfig":             map[string]any{"shutdownGracePeriod": "60s"},
			"machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{"pools.operator.machineconfiguration.openshift.io/master": ""}},
		},
	}}
}
