package stable

import (
	"slices"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/machineconfig"
)

// pools expects none: a cluster with its control plane elsewhere may serve the kind without using it.
func (r *Report) pools(s *State) {
	for i := range s.Pools {
		pool := &s.Pools[i]
		object := name(kindPool, pool)
		updated := poolCondition(pool, machineconfigurationv1.MachineConfigPoolUpdated)
		updating := poolCondition(pool, machineconfigurationv1.MachineConfigPoolUpdating)
		degraded := poolCondition(pool, machineconfigurationv1.MachineConfigPoolDegraded)
		r.mark(object, pool.UID, pool.Generation, pool.Spec.Configuration.Name, updated.mark(), updating.mark(), degraded.mark())

		isTrue := string(corev1.ConditionTrue)
		if degraded.status == isTrue {
			r.moving(object, degraded.since, "%s", degraded)
		}
		switch {
		case pool.Generation != pool.Status.ObservedGeneration:
			r.moving(object, metav1.Time{}, "the machine-config-operator has not seen its latest change")
		case updating.status == isTrue:
			r.moving(object, updating.since, "%d of %d nodes are updated", pool.Status.UpdatedMachineCount, pool.Status.MachineCount)
		case updated.status == isTrue:
		case pool.Spec.Paused:
			// No node restarts until a person goes on.
			r.Notes = append(r.Notes, object+": it is paused, and an update of its nodes waits")
		default:
			r.moving(object, updated.since, "%s", updated)
		}
	}
}

func poolCondition(pool *machineconfigurationv1.MachineConfigPool, kind machineconfigurationv1.MachineConfigPoolConditionType) condition {
	for _, c := range pool.Status.Conditions {
		if c.Type == kind {
			return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
		}
	}
	return condition{kind: string(kind), status: string(corev1.ConditionUnknown)}
}

func (r *Report) nodes(s *State) {
	r.expect(s, kindNode, len(s.Nodes))
	for i := range s.Nodes {
		node := &s.Nodes[i]
		object := name(kindNode, node)
		ready := nodeReady(node)
		// The boot tells of a restart that was over before anybody called the node not ready.
		r.mark(object, node.UID, node.Status.NodeInfo.BootID, ready.mark(), node.Spec.Unschedulable)

		if ready.status != string(corev1.ConditionTrue) {
			r.moving(object, ready.since, "%s", ready)
		}
		if node.Spec.Unschedulable {
			r.moving(object, metav1.Time{}, "it is cordoned and takes no pods")
		}
		switch request, err := machineconfig.Asked(node.Annotations); {
		case err != nil:
			r.moving(object, metav1.Time{}, "it asks the machine-config-operator for something that is not understood")
		case request != nil && request.Verb == machineconfig.VerbDrain:
			r.moving(object, metav1.Time{}, "it is being drained")
		case request != nil:
			r.moving(object, metav1.Time{}, "it waits to take pods again")
		}
		if node.Annotations[machineconfig.CurrentConfigAnnotation] != node.Annotations[machineconfig.DesiredConfigAnnotation] {
			r.moving(object, metav1.Time{}, "it takes another machine config, and restarts for it where that is needed")
		}
	}
}

func nodeReady(node *corev1.Node) condition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return condition{kind: string(corev1.NodeReady), status: string(corev1.ConditionUnknown)}
	}
	c := node.Status.Conditions[i]
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}
