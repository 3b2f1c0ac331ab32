// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/machineconfig"
	"github.com/solonode/sno/machineconfig/internal/nodestate"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// AnnotateTopology returns how to write a node's topology annotation, from which the machine-config daemon reads
// whether to drain (U-MCO-2). The value of another manager is kept, and an empty or unknown topology changes nothing.
func AnnotateTopology(in Inputs, node *corev1.Node) patch.Step {
	if result := patch.TopologyKnown(in.Cluster); result != nil {
		return patch.Step{Result: result}
	}
	if result := checkValid(in); result != nil {
		return patch.Step{Result: result}
	}
	managers, err := ownership.ManagersAt(node, fieldpath.MakePathOrDie("metadata", "annotations", machineconfig.TopologyAnnotation))
	if err != nil {
		return patch.Step{Result: patch.Invalid(err)}
	}
	ours := slices.Contains(managers, FieldOwner)
	others := slices.DeleteFunc(managers, func(m string) bool { return m == FieldOwner })
	value, exists := node.Annotations[machineconfig.TopologyAnnotation]
	want := in.Cluster.ControlPlane.Reported
	_, hasDaemon := node.Annotations[machineconfig.CurrentConfigAnnotation]
	switch {
	case patch.OptsOut(node, machineconfig.Name) || in.OptedOut():
		return patch.Step{Release: ours, Result: optedOut("annotate nodes with the topology")}
	case topology.ReadingOf(want).Mode != want:
		return patch.Step{Result: notNeeded("Nodes are annotated only with a known control-plane topology" + in.Cluster.UnknownValues())}
	case !hasDaemon || nodestate.IsWindows(node):
		return patch.Step{Release: ours, Result: notNeeded("The node has no machine-config daemon to read the topology")}
	case exists && configv1.TopologyMode(value) == want && !ours:
		return patch.Step{}
	case exists && configv1.TopologyMode(value) != want && len(others) > 0:
		return patch.Step{Release: ours, Result: &patch.Result{State: patch.Blocked, Reason: patch.ReasonFieldOwnedByOther,
			Message: "The topology annotation of a node is owned by " + patch.Quoted(others) + " and stays as it is; " +
				"remove it to have it follow the topology"}}
	}
	return patch.Step{Intent: corev1ac.Node(node.Name).WithUID(node.UID).WithAnnotations(map[string]string{machineconfig.TopologyAnnotation: string(want)})}
}
