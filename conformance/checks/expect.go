// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/report"
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

func (s *State) nodesWith(roles ...string) []corev1.Node {
	var found []corev1.Node
	for _, node := range s.Nodes {
		for _, role := range roles {
			if _, ok := node.Labels[role]; ok {
				found = append(found, node)
				break
			}
		}
	}
	return found
}

func (s *State) controlPlaneNodes() []corev1.Node { return s.nodesWith(masterRole, controlPlaneRole) }

func isControlPlane(node *corev1.Node) bool {
	_, master := node.Labels[masterRole]
	_, controlPlane := node.Labels[controlPlaneRole]
	return master || controlPlane
}

func (s *State) node(name string) *corev1.Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}

func pinned(selector map[string]string) bool {
	_, master := selector[masterRole]
	_, controlPlane := selector[controlPlaneRole]
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

// closingTaints returns the taints of the role on control-plane nodes here, or the one that they get if a worker is
// installed with them.
func (s *State) closingTaints() []corev1.Taint {
	var taints []corev1.Taint
	for _, node := range s.controlPlaneNodes() {
		for _, taint := range node.Spec.Taints {
			role := taint.Key == masterRole || taint.Key == controlPlaneRole
			if role && !slices.Contains(taints, taint) {
				taints = append(taints, taint)
			}
		}
	}
	if len(taints) == 0 {
		taints = controlPlaneTaints()[:1]
	}
	return taints
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1 // default of the API
	}
	return *d.Spec.Replicas
}

func (s *State) podsOf(d *appsv1.Deployment) []corev1.Pod {
	var found []corev1.Pod
	for _, pod := range s.Pods {
		if pod.Namespace == d.Namespace && selects(d.Spec.Selector, pod.Labels) {
			found = append(found, pod)
		}
	}
	return found
}

func nameOf(d *appsv1.Deployment) string { return "Deployment " + d.Namespace + "/" + d.Name }

func found(object, field, want string, got any, held bool) report.Evidence {
	return report.Evidence{Object: object, Field: field, Want: want, Got: fmt.Sprint(got), Held: held}
}

func missingObject(object string) []report.Evidence {
	return []report.Evidence{found(object, "metadata.name", "the object exists", "it does not exist", false)}
}

func nodesOf(pods []corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Spec.NodeName)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "no pods"
	}
	return strings.Join(names, ", ")
}
