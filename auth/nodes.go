package auth

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SchedulableControlPlaneNodes counts the nodes with the master role on which pods with these tolerations can run. Taints
// that Kubernetes sets for a while, such as on a node that is cordoned or not ready, do not count: a rolling update of the
// nodes must not scale the Deployments. Tolerations that are neither Exists nor Equal do not count.
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

// tolerates is the scheduler's rule. The method of the API type has another signature in every second release.
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
