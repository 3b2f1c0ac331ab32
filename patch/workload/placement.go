package workload

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/topology"
)

const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// Place pins pods to a pool: its node selector, and the tolerations that go with it. Of what is there, only what belongs to a
// pool comes and goes; the rest stays, in its order, so that shaping twice is shaping once.
func Place(pod *corev1.PodSpec, pool topology.Pool) {
	selector := map[string]string{}
	maps.Copy(selector, pod.NodeSelector)
	delete(selector, controlPlaneLabel)
	for _, other := range []topology.Pool{topology.ControlPlanePool, topology.WorkerPool} {
		for label := range topology.PlacementOf(other).NodeSelector() {
			delete(selector, label)
		}
	}
	maps.Copy(selector, topology.PlacementOf(pool).NodeSelector())
	pod.NodeSelector = selector
	pod.Tolerations = Tolerate(pod.Tolerations, pool)
}

// Tolerate returns the tolerations with those for the control plane added where they are missing, or removed where the pool is
// another one. What stays keeps its place: another order would be another pod template, and a rollout for nothing. The
// argument is not changed.
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
