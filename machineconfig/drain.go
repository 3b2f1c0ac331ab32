package machineconfig

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/topology"
)

// DrainDecision says whether a node is drained before it restarts, and why. Reason and Message are stable: they name no node and no pod.
type DrainDecision struct {
	Required bool
	// Reason is one of the constants below, or of package fit where that decided.
	Reason string
	// Message says it in words.
	Message string
	// Detail names what stands in the way, for a log; it may be empty.
	Detail string
}

// Reasons of a DrainDecision, besides those of package fit.
const (
	// DrainAsEver is for a control plane that survives the loss of a node.
	DrainAsEver = "HighlyAvailable"
	// DrainNowhereToGo is for a control plane of one node, with DrainNever.
	DrainNowhereToGo = "NowhereToGo"
	// DrainControlPlane is for that one node, with DrainWorkers.
	DrainControlPlane = "ControlPlaneNode"
)

// DrainRequired reports whether the node in.Node is to be drained before it restarts (R-MCO-2). It needs in.Cluster.
//
// On a SingleReplica control plane no node is drained, workers neither: there is nowhere to go, and nobody knows whether the workers
// are full (U-MCO-2). DrainWorkers finds that out: a worker is drained if package fit is certain
// that all its pods, together with those of in.Leaving, find room elsewhere. That needs everything in Inputs that belongs to drains. The
// control-plane node is never drained.
//
// With every other topology, empty and unknown ones included, nodes are drained as ever.
//
// Errors: topology.ErrClusterNotRead and ErrInputs. With an error there is no answer: drain nothing, and let nothing restart.
func DrainRequired(in Inputs) (DrainDecision, error) {
	if in.Cluster == nil {
		return DrainDecision{}, topology.ErrClusterNotRead
	}
	if err := in.Validate(); err != nil {
		return DrainDecision{}, err
	}
	if topology.ReadingOf(in.Cluster.ControlPlane.Mode).Mode != configv1.SingleReplicaTopologyMode {
		return DrainDecision{Required: true, Reason: DrainAsEver, Message: "The control plane does not stand on a single node, so nodes are drained before they restart"}, nil
	}
	if in.Policy != DrainWorkers {
		return DrainDecision{Reason: DrainNowhereToGo,
			Message: "The control plane has one node, and nobody knows whether there is room for its pods elsewhere; nothing is drained"}, nil
	}
	if i := slices.IndexFunc(in.Nodes, func(node corev1.Node) bool { return node.Name == in.Node }); i >= 0 && isControlPlane(&in.Nodes[i]) {
		return DrainDecision{Reason: DrainControlPlane, Message: "This is the only control-plane node; it is not drained"}, nil
	}
	verdict := fit.Check(
		fit.Cluster{Nodes: in.Nodes, Pods: in.Pods, Budgets: in.Budgets, ReplicaSets: in.ReplicaSets, StatefulSets: in.StatefulSets},
		append([]string{in.Node}, in.stillLeaving()...)...)
	return DrainDecision{Required: verdict.Fits, Reason: verdict.Reason, Message: verdict.Message, Detail: verdict.Detail}, nil
}

// stillLeaving are those of in.Leaving that are there and are drained: the control-plane node keeps its pods.
func (in Inputs) stillLeaving() []string {
	var names []string
	for i := range in.Nodes {
		if node := &in.Nodes[i]; node.Name != in.Node && slices.Contains(in.Leaving, node.Name) && !isControlPlane(node) {
			names = append(names, node.Name)
		}
	}
	return names
}

func isControlPlane(node *corev1.Node) bool {
	_, master := node.Labels[MasterRole]
	_, controlPlane := node.Labels[ControlPlaneRole]
	return master || controlPlane
}
