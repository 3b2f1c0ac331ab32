// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/topology"
)

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// Place pins pods to a pool. Node selectors and tolerations of no pool stay.
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

// Tolerate adds tolerations for the control plane, or removes them for another pool, in a copy with the same order.
func Tolerate(present []corev1.Toleration, pool topology.Pool) []corev1.Toleration {
	wanted := Tolerations(topology.PlacementOf(pool))
	tolerations := slices.Clone(present)
	for _, t := range Tolerations(topology.PlacementOf(topology.ControlPlanePool)) {
		if !tolerates(wanted, t) {
			tolerations = slices.DeleteFunc(tolerations, func(present corev1.Toleration) bool { return present.MatchToleration(&t) })
		}
	}
	for _, t := range wanted {
		if !tolerates(tolerations, t) {
			tolerations = append(tolerations, t)
		}
	}
	return tolerations
}

func tolerates(tolerations []corev1.Toleration, t corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(present corev1.Toleration) bool { return present.MatchToleration(&t) })
}
