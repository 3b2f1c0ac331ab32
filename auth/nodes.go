// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SchedulableControlPlaneNodes returns the number of nodes with the master role on which pods with the tolerations can
// run. Temporary taints of Kubernetes, such as of a cordoned or not ready node, are ignored, because a rolling update
// of the nodes must not scale the Deployments. Tolerations that are neither Exists nor Equal are ignored too.
func SchedulableControlPlaneNodes(nodes []corev1.Node, tolerations []corev1.Toleration) int32 {
	var count int32
	for _, node := range nodes {
		_, master := node.Labels[ControlPlaneNodeLabel]
		repels := func(taint corev1.Taint) bool {
			return taint.Effect != corev1.TaintEffectPreferNoSchedule && !temporary(taint) &&
				!slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) })
		}
		if master && !slices.ContainsFunc(node.Spec.Taints, repels) {
			count++
		}
	}
	return count
}

func temporary(taint corev1.Taint) bool {
	return strings.HasPrefix(taint.Key, "node.kubernetes.io/") || strings.HasPrefix(taint.Key, "node.cloudprovider.kubernetes.io/")
}

// tolerates implements the scheduler's rule, because the signature of the API type's method changes between releases.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if (t.Effect != "" && t.Effect != taint.Effect) || (t.Key != "" && t.Key != taint.Key) {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Key != "" && t.Value == taint.Value
	}
	return false
}
