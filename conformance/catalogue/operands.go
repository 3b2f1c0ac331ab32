// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solonode/sno/conformance/report"
)

// Operands of console and auth, whose Deployments depend on the same topology.
var (
	consoleServer = types.NamespacedName{Namespace: "openshift-console", Name: "console"}
	downloads     = types.NamespacedName{Namespace: "openshift-console", Name: "downloads"}
	oauthServer   = types.NamespacedName{Namespace: "openshift-authentication", Name: "oauth-openshift"}
	oauthAPI      = types.NamespacedName{Namespace: "openshift-oauth-apiserver", Name: "apiserver"}
)

func consoles() []types.NamespacedName { return []types.NamespacedName{consoleServer, downloads} }
func oauths() []types.NamespacedName   { return []types.NamespacedName{oauthServer, oauthAPI} }

// titleOf is the name of a Deployment in titles; that of an API server needs its namespace.
func titleOf(w types.NamespacedName) string {
	if w == oauthAPI {
		return w.String()
	}
	return w.Name
}

func operandsSingle(s *State) string {
	return unless(single(s.operandsMode()), "the control plane is not SingleReplica")
}

func operandsSeveral(s *State) string {
	return unless(!single(s.operandsMode()), "the control plane is SingleReplica")
}

// oneReplica is SNO-CON-001 and 002, SNO-AUT-001 and 002.
func oneReplica(id, module string, requirement Requirement, w types.NamespacedName) Check {
	return Check{
		ID: id, Title: "The Deployment " + titleOf(w) + " has a single replica, and is available, on a single control-plane node", Module: module,
		Requirement: requirement, Level: Core, Tier: Static, Topologies: []string{"SingleReplica", "External"},
		NotApplicable: firstOf(allAbsent(w), operandsSingle),
		Run: eachOf([]types.NamespacedName{w}, func(_ *State, d *appsv1.Deployment) []report.Evidence {
			return []report.Evidence{
				found(NameOf(d), "spec.replicas", "1", Replicas(d), Replicas(d) == 1),
				found(NameOf(d), "status.availableReplicas", "1", d.Status.AvailableReplicas, d.Status.AvailableReplicas == 1),
			}
		}),
		Controls: []Control{
			{Name: "two replicas", Change: onDeployment(w, setReplicas(2))},
			{Name: "no available replica", Change: onDeployment(w, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })},
			annotated("an annotation", w),
		},
	}
}

// severalReplicas is SNO-CON-004 and 005, SNO-AUT-004 and 005.
func severalReplicas(id, module string, requirement Requirement, w types.NamespacedName) Check {
	return Check{
		ID: id, Title: "The Deployment " + titleOf(w) + " has several replicas, on different nodes, where the control plane is highly available", Module: module,
		Requirement: requirement, Level: Core, Tier: Static, Topologies: severalTopologies(),
		NotApplicable: firstOf(allAbsent(w), operandsSeveral),
		Run: eachOf([]types.NamespacedName{w}, func(s *State, d *appsv1.Deployment) []report.Evidence {
			rule, spread := separated(s, d)
			return []report.Evidence{
				found(NameOf(d), "spec.replicas", "at least 2", Replicas(d), Replicas(d) >= 2),
				found(NameOf(d), "status.availableReplicas", "at least 2", d.Status.AvailableReplicas, d.Status.AvailableReplicas >= 2),
				rule, spread,
			}
		}),
		Controls: []Control{
			{Name: "one replica", Change: onDeployment(w, setReplicas(1))},
			{Name: "no rule for different nodes", Change: onDeployment(w, removeSeparation)},
			{Name: "all pods on one node", Change: movePodsToOneNode(w)},
			annotated("an annotation", w),
		},
	}
}

// operandWithin accepts control-plane nodes, or any node if nothing pins the Deployment.
func operandWithin(_ *State, d *appsv1.Deployment, node *corev1.Node) bool {
	return !onControlPlane(d.Spec.Template.Spec.NodeSelector) || onControlPlane(node.Labels)
}
