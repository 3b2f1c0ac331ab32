// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/report"
)

// nodeCount requires the number of control-plane nodes of each topology. A growing cluster fails until its topology is
// changed.
func nodeCount() Check {
	return Check{
		ID: "SNO-TOP-002", Title: "The control plane's topology agrees with the number of its nodes", Module: Topology, Level: Core, Tier: Static,
		Requirement: Requirement{"R-TOP-3", "the high-availability mode is None with fewer than three control-plane replicas"},
		Run: func(in *Input) ([]report.Evidence, error) {
			n, mode := len(in.State.ControlPlaneNodes()), in.State.controlPlaneMode()
			want, held := "at least 3", n >= 3
			switch mode {
			case configv1.SingleReplicaTopologyMode:
				want, held = "1", n == 1
			case configv1.HighlyAvailableArbiterMode, configv1.DualReplicaTopologyMode:
				want, held = "2", n == 2
			case configv1.ExternalTopologyMode:
				want, held = "0", n == 0
			case configv1.HighlyAvailableTopologyMode:
			}
			return []report.Evidence{found("Nodes of the control plane", "number, with controlPlaneTopology "+string(mode), want, n, held)}, nil
		},
		Controls: []Control{
			{Name: "another number of nodes", Change: onState(changeNodeCount)},
			{Name: "one more worker", MustPass: true, Change: onState(addWorker)},
		},
	}
}

func changeNodeCount(s *State) {
	nodes := s.ControlPlaneNodes()
	if len(nodes) > 1 {
		s.Nodes = slices.DeleteFunc(s.Nodes, func(n corev1.Node) bool { return onControlPlane(n.Labels) && n.Name != nodes[0].Name })
		return
	}
	s.Nodes = append(s.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one-more", Labels: map[string]string{masterRole: ""}}})
}
