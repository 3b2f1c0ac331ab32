// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
)

// The rules of R-TOP-4 and R-SNO-8 are written again here on purpose. With those of module topology, a wrong rule would
// produce its own expectation.

const (
	masterRole       = "node-role.kubernetes.io/master"
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
	arbiterRole      = "node-role.kubernetes.io/arbiter"
	workerRole       = "node-role.kubernetes.io/worker"
)

// controlPlaneMode returns controlPlaneTopology; empty and unknown values count as HighlyAvailable, as in the API's
// default.
func (s *State) controlPlaneMode() configv1.TopologyMode {
	if s.Infrastructure == nil {
		return configv1.HighlyAvailableTopologyMode
	}
	return known(s.Infrastructure.Status.ControlPlaneTopology)
}

func (s *State) infrastructureMode() configv1.TopologyMode {
	if s.Infrastructure == nil {
		return configv1.HighlyAvailableTopologyMode
	}
	return known(s.Infrastructure.Status.InfrastructureTopology)
}

func known(mode configv1.TopologyMode) configv1.TopologyMode {
	switch mode {
	case configv1.HighlyAvailableTopologyMode, configv1.HighlyAvailableArbiterMode, configv1.SingleReplicaTopologyMode,
		configv1.DualReplicaTopologyMode, configv1.ExternalTopologyMode:
		return mode
	default:
		return configv1.HighlyAvailableTopologyMode
	}
}

// operandsMode applies to what OpenShift runs on control-plane nodes. With an External control plane it is
// infrastructureTopology.
func (s *State) operandsMode() configv1.TopologyMode {
	if mode := s.controlPlaneMode(); mode != configv1.ExternalTopologyMode {
		return mode
	}
	return s.infrastructureMode()
}

func single(mode configv1.TopologyMode) bool { return mode == configv1.SingleReplicaTopologyMode }

// onlySingle is Check.NotApplicable of checks of a single control-plane node, and exceptSingle of all others.
func onlySingle(s *State) string {
	return unless(single(s.controlPlaneMode()), "the control plane is not SingleReplica")
}
func exceptSingle(s *State) string {
	return unless(!single(s.controlPlaneMode()), "the control plane is SingleReplica")
}

func unless(applies bool, why string) string {
	if applies {
		return ""
	}
	return why
}

// firstOf returns the first reason.
func firstOf(reasons ...func(*State) string) func(*State) string {
	return func(s *State) string {
		for _, reason := range reasons {
			if why := reason(s); why != "" {
				return why
			}
		}
		return ""
	}
}

// severalTopologies are the values of controlPlaneTopology with more than one node, or none of the cluster.
func severalTopologies() []string {
	return []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica", "External"}
}

func (s *State) nodesWith(roles ...string) []corev1.Node {
	return slices.DeleteFunc(slices.Clone(s.Nodes), func(node corev1.Node) bool {
		return !slices.ContainsFunc(roles, func(role string) bool { _, has := node.Labels[role]; return has })
	})
}

// ControlPlaneNodes are those with either name of the role.
func (s *State) ControlPlaneNodes() []corev1.Node { return s.nodesWith(masterRole, controlPlaneRole) }

// onControlPlane reports whether labels are those of a control-plane node, or a selector selects only these.
func onControlPlane(labels map[string]string) bool {
	_, master := labels[masterRole]
	_, controlPlane := labels[controlPlaneRole]
	return master || controlPlane
}

func tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" && t.Operator == corev1.TolerationOpExists || t.Key == taint.Key &&
			(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value))
	})
}

// controlPlaneTaints are the taints of unschedulable control-plane nodes, with both names of the role.
func controlPlaneTaints() []corev1.Taint {
	return []corev1.Taint{
		{Key: masterRole, Effect: corev1.TaintEffectNoSchedule}, {Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule},
	}
}
