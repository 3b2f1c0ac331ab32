// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solonode/sno/machineconfig/fit"
	"github.com/solonode/sno/topology"
)

// DrainDecision is whether a node is drained before it restarts. Reason and Message name no node and no pod.
type DrainDecision struct {
	Required bool
	Reason   string // one of the constants below, or of package fit
	Message  string
	Detail   string // for a log: the pod or budget that prevents the drain
}

// Reasons of a DrainDecision, in addition to those of package fit.
const (
	ReasonHighlyAvailable  = "HighlyAvailable"  // the control plane is not SingleReplica
	ReasonNowhereToGo      = "NowhereToGo"      // SingleReplica, with DrainNever
	ReasonControlPlaneNode = "ControlPlaneNode" // the control-plane node of SingleReplica, with DrainWorkers
)

// DrainRequired reports whether in.Node is drained before it restarts (R-MCO-2): always, except with a SingleReplica
// control plane (U-MCO-2), where only DrainWorkers drains workers whose pods, with those of in.Draining, fit elsewhere.
// With an error, topology.ErrClusterNotRead or ErrInputs, no node may be drained or restarted.
func DrainRequired(in Inputs) (DrainDecision, error) {
	if in.Cluster == nil {
		return DrainDecision{}, topology.ErrClusterNotRead
	}
	if err := in.Validate(); err != nil {
		return DrainDecision{}, err
	}
	// An empty or unknown topology is not SingleReplica.
	if topology.ReadingOf(in.Cluster.ControlPlane.Mode).Mode != configv1.SingleReplicaTopologyMode {
		return DrainDecision{Required: true, Reason: ReasonHighlyAvailable,
			Message: "The control plane is not SingleReplica, so nodes are drained before they restart"}, nil
	}
	if in.Policy != DrainWorkers {
		return DrainDecision{Reason: ReasonNowhereToGo,
			Message: "The control plane is SingleReplica, and other nodes may have no room for the pods, so nothing is drained"}, nil
	}
	draining := []string{in.Node}
	for i := range in.Nodes {
		switch node := &in.Nodes[i]; {
		case node.Name == in.Node && isControlPlane(node):
			return DrainDecision{Reason: ReasonControlPlaneNode, Message: "The only control-plane node is not drained"}, nil
		case node.Name != in.Node && slices.Contains(in.Draining, node.Name) && !isControlPlane(node): // the control-plane node keeps its pods
			draining = append(draining, node.Name)
		}
	}
	verdict := fit.Check(fit.Cluster{
		Nodes: in.Nodes, Pods: in.Pods, Budgets: in.Budgets, ReplicaSets: in.ReplicaSets, StatefulSets: in.StatefulSets,
	}, draining...)
	return DrainDecision{Required: verdict.Fits, Reason: verdict.Reason, Message: verdict.Message, Detail: verdict.Detail}, nil
}

// isControlPlane reports whether a node has a role of the control plane.
func isControlPlane(node *corev1.Node) bool {
	_, master := node.Labels[MasterRole]
	_, controlPlane := node.Labels[ControlPlaneRole]
	return master || controlPlane
}

// ErrRequest is returned for an invalid request. It must not be acknowledged, or the node would restart.
var ErrRequest = errors.New("not a request of the drain protocol")

// Verb is the kind of a request.
type Verb string

// The verbs of the drain protocol.
const (
	VerbDrain    Verb = "drain"
	VerbUncordon Verb = "uncordon"
)

// Request is the value of DesiredDrainAnnotation. Config is the name of a machine config, which only distinguishes
// requests.
type Request struct {
	Verb   Verb
	Config string
}

// String returns the value of the annotation.
func (r Request) String() string { return string(r.Verb) + "-" + r.Config }

// parseRequest parses the value of an annotation: a verb, a dash and the name of a machine config (U-MCO-1).
func parseRequest(value string) (Request, error) {
	verb, config, _ := strings.Cut(value, "-")
	request := Request{Verb: Verb(verb), Config: config}
	if request.Verb != VerbDrain && request.Verb != VerbUncordon {
		return Request{}, fmt.Errorf("%w: unknown verb in %.80q; want %s or %s", ErrRequest, value, VerbDrain, VerbUncordon)
	}
	if problems := validation.IsDNS1123Subdomain(config); len(problems) > 0 {
		return Request{}, fmt.Errorf("%w: %.80q does not name a machine config: %s", ErrRequest, value, problems[0])
	}
	return request, nil
}

// Requested returns the pending request of a node; nil if there is none.
func Requested(annotations map[string]string) (*Request, error) {
	desired, requested := annotations[DesiredDrainAnnotation]
	if !requested || desired == annotations[LastAppliedDrainAnnotation] {
		return nil, nil
	}
	request, err := parseRequest(desired)
	if err != nil {
		return nil, err
	}
	return &request, nil
}

// MayRestart reports whether a drain of the node was acknowledged, and since then neither an uncordon was acknowledged
// nor another drain requested.
func MayRestart(annotations map[string]string) bool {
	last, err := parseRequest(annotations[LastAppliedDrainAnnotation])
	_, requested := annotations[DesiredDrainAnnotation]
	if err != nil || !requested || last.Verb != VerbDrain {
		return false
	}
	request, err := Requested(annotations)
	return err != nil || request == nil || request.Verb != VerbDrain
}
