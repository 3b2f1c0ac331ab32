package auth

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// passing are the keys of taints that come and go while a node is cordoned, drained, rebooted, starved or shut down. Kubernetes
// puts them on and takes them off by itself.
var passing = []string{
	corev1.TaintNodeUnschedulable,
	corev1.TaintNodeNotReady,
	corev1.TaintNodeUnreachable,
	corev1.TaintNodeMemoryPressure,
	corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure,
	corev1.TaintNodeNetworkUnavailable,
	corev1.TaintNodeOutOfService,
	"node.cloudprovider.kubernetes.io/uninitialized",
	"node.cloudprovider.kubernetes.io/shutdown",
}

// SchedulableControlPlaneNodes counts the nodes on which pods with these tolerations belong, for Host: those with the master
// role and without a taint for good (NoSchedule or NoExecute) that the pods do not tolerate. A node that is cordoned, not ready
// or rebooting counts. Of taints by other names nobody can tell how long they stay; they are taken for good.
//
// Tolerations with an operator of newer releases than Exists and Equal tolerate nothing here.
func SchedulableControlPlaneNodes(nodes []corev1.Node, tolerations []corev1.Toleration) int32 {
	var count int32
	for _, node := range nodes {
		_, master := node.Labels[ControlPlaneNodeLabel]
		closed := func(taint corev1.Taint) bool {
			return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.Contains(passing, taint.Key) &&
				!slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) })
		}
		if master && !slices.ContainsFunc(node.Spec.Taints, closed) {
			count++
		}
	}
	return count
}

// tolerates is the rule of the scheduler. The method of the API's own type has another signature in every second release.
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
