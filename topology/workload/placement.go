// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/topology"
)

const (
	masterLabel       = "node-role.kubernetes.io/master"
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// Place pins pods to a pool. Node selectors of no pool stay, and all tolerations.
func Place(pod *corev1.PodSpec, pool topology.Pool) {
	selector := maps.Clone(pod.NodeSelector)
	delete(selector, controlPlaneLabel)
	for _, other := range []topology.Pool{topology.ControlPlanePool, topology.WorkerPool} {
		for label := range topology.PlacementOf(other).NodeSelector() {
			delete(selector, label)
		}
	}
	pod.NodeSelector = topology.PlacementOf(pool).NodeSelector()
	maps.Copy(pod.NodeSelector, selector)
	pod.Tolerations = Tolerate(pod.Tolerations, pool)
}

// Tolerate returns a copy of the tolerations with those of the control plane appended, for pods on the control plane
// that do not tolerate the taint of its nodes yet. Others stay as they are: more tolerations would only restart pods.
func Tolerate(present []corev1.Toleration, pool topology.Pool) []corev1.Toleration {
	tolerations := slices.Clone(present)
	if pool == topology.ControlPlanePool && !ToleratesControlPlane(present) {
		for _, t := range Tolerations(topology.PlacementOf(pool)) {
			if !slices.ContainsFunc(present, func(have corev1.Toleration) bool { return have.MatchToleration(&t) }) {
				tolerations = append(tolerations, t)
			}
		}
	}
	return tolerations
}

// ToleratesControlPlane reports whether pods may run on a control-plane node that is not schedulable for others. The
// machine-config operator taints it by the role master only (U-MCO-7).
func ToleratesControlPlane(tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		exists := t.Operator == corev1.TolerationOpExists
		return (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule) &&
			(t.Key == "" && exists || t.Key == masterLabel && (exists || t.Value == ""))
	})
}
