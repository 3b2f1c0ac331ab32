// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

const masterRole = "node-role.kubernetes.io/master"

// Taints with these prefixes are temporary: cordoned, not ready, unreachable, under pressure, being initialized or shut
// down. Those of roles have another one.
var passing = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"}

// schedulableControlPlaneNodes counts the nodes with the master role and without a permanent taint that the pods do not
// tolerate. Temporary taints do not count, because rolling updates of the nodes would scale both Deployments.
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

// repels reports whether a taint permanently excludes pods with these tolerations.
func repels(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	if taint.Effect == corev1.TaintEffectPreferNoSchedule ||
		slices.ContainsFunc(passing, func(prefix string) bool { return strings.HasPrefix(taint.Key, prefix) }) {
		return false
	}
	return !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) })
}
