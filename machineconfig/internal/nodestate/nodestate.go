// SPDX-License-Identifier: Apache-2.0

// Package nodestate reads properties of nodes.
package nodestate

import corev1 "k8s.io/api/core/v1"

// Healthy reports whether Ready is True, and the conditions of pressure and NetworkUnavailable are absent or False.
func Healthy(node *corev1.Node) bool {
	ready := false
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady:
			ready = condition.Status == corev1.ConditionTrue
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if condition.Status != corev1.ConditionFalse {
				return false
			}
		}
	}
	return ready
}

// IsWindows reports whether the node runs Windows.
func IsWindows(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == string(corev1.Windows)
}
