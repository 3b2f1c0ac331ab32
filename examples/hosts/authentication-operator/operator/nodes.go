package operator

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

const masterRole = "node-role.kubernetes.io/master"

// Taints below these prefixes belong to what a node goes through: cordoned, not ready, unreachable, under pressure, being
// initialized or shut down. The roles are below another one.
var passing = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"}

// schedulableControlPlaneNodes counts the nodes with the master role that the pods can run on for good: those without a taint
// that they do not tolerate. A taint that passes does not count, or both Deployments would be scaled down and up again in the
// middle of every rolling update of the nodes.
func schedulableControlPlaneNodes(nodes []corev1.Node, tolerations []corev1.Toleration) int32 {
	var count int32
	for i := range nodes {
		if _, master := nodes[i].Labels[masterRole]; master && !slices.ContainsFunc(nodes[i].Spec.Taints, func(taint corev1.Taint) bool {
			return repels(taint, tolerations)
		}) {
			count++
		}
	}
	return count
}

// repels tells whether a taint keeps pods with these tolerations away for good.
func repels(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	if taint.Effect == corev1.TaintEffectPreferNoSchedule ||
		slices.ContainsFunc(passing, func(prefix string) bool { return strings.HasPrefix(taint.Key, prefix) }) {
		return false
	}
	return !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) })
}
