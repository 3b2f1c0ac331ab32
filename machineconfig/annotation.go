package machineconfig

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
	"github.com/solonode/sno/topology"
)

// AnnotationStep is what to do with the topology annotation of one node: apply Intent, or Release what is ours, or neither.
type AnnotationStep struct {
	Intent  *corev1ac.NodeApplyConfiguration
	Release bool
	// Result is what there is to say; nil when the annotation says, or will say, what the topology is.
	Result *patch.Result
}

// AnnotateTopology is for a node beside the stock machine-config operator, of which its daemon learns in an annotation
// whether nodes are drained. The value is that of infrastructure.status.controlPlaneTopology, as the operator writes it
// (U-MCO-2). It is written only where it is missing or different, and never over somebody else's: the operator itself
// is expected to follow the topology, so its name in the result means that it did not, yet. An empty or unknown
// topology writes nothing and keeps what is there.
func AnnotateTopology(in Inputs, node *corev1.Node) AnnotationStep {
	if result := patch.TopologyKnown(in.Cluster); result != nil {
		return AnnotationStep{Result: result}
	}
	if err := in.Validate(); err != nil {
		return AnnotationStep{Result: invalid(err)}
	}
	managers, err := ownership.ManagersAt(node, fieldpath.MakePathOrDie("metadata", "annotations", TopologyAnnotation))
	if err != nil {
		return AnnotationStep{Result: invalid(err)}
	}
	mine := slices.Contains(managers, FieldOwner)
	others := slices.DeleteFunc(managers, func(m string) bool { return m == FieldOwner })
	says, has := node.Annotations[TopologyAnnotation]
	want := in.Cluster.ControlPlane.Reported
	_, daemon := node.Annotations[CurrentConfigAnnotation]
	switch {
	case patch.OptsOut(node.Annotations, Name) || (in.MachineConfiguration != nil && patch.OptsOut(in.MachineConfiguration.Annotations, Name)):
		return AnnotationStep{Release: mine, Result: &patch.Result{State: patch.OptedOut, Reason: ReasonOptedOut,
			Message: "The annotation " + patch.OptOutAnnotation + " keeps this module away; remove it to have the node told the topology"}}
	case topology.ReadingOf(want).Mode != want:
		return AnnotationStep{Result: &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded,
			Message: "The control-plane topology has no value that a node could be told" + in.Cluster.UnknownValues()}}
	case !daemon || isWindows(node):
		return AnnotationStep{Release: mine, Result: &patch.Result{State: patch.NotNeeded, Reason: ReasonNotNeeded,
			Message: "The node has no machine-config daemon to be told the topology"}}
	case has && configv1.TopologyMode(says) == want && !mine:
		return AnnotationStep{}
	case has && configv1.TopologyMode(says) != want && len(others) > 0 && !in.ForceConflicts:
		result := patch.OwnedByOther("The topology annotation of a node", others...)
		return AnnotationStep{Release: mine, Result: &result}
	}
	return AnnotationStep{Intent: corev1ac.Node(node.Name).WithUID(node.UID).WithAnnotations(map[string]string{TopologyAnnotation: string(want)})}
}
