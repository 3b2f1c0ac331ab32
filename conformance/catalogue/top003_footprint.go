// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

// footprint applies the control plane's topology to pinned workloads, and the infrastructure's to all others.
func footprint() Check {
	return Check{
		ID: "SNO-TOP-003", Title: "Nothing of OpenShift has more replicas than its topology asks for", Module: Topology, Level: Core, Tier: Static,
		Requirement: Requirement{"R-TOP-2", "an operand has no more replicas than its topology asks for"}, Topologies: []string{"SingleReplica", "External"},
		NotApplicable: func(s *State) string {
			return unless(single(s.controlPlaneMode()) || single(s.infrastructureMode()), "neither topology is SingleReplica")
		},
		Run: func(in *Input) ([]report.Evidence, error) {
			var evidence []report.Evidence
			add := func(kind, namespace, name string, pod corev1.PodSpec, n *int32) {
				governing := in.State.infrastructureMode()
				if onControlPlane(pod.NodeSelector) {
					governing = in.State.operandsMode()
				}
				if count := ptr.Deref(n, 1); single(governing) {
					evidence = append(evidence, found(kind+" "+namespace+"/"+name, "spec.replicas", "at most 1", count, count <= 1))
				}
			}
			for _, d := range in.State.Deployments {
				add("Deployment", d.Namespace, d.Name, d.Spec.Template.Spec, d.Spec.Replicas)
			}
			for _, d := range in.State.StatefulSets {
				add("StatefulSet", d.Namespace, d.Name, d.Spec.Template.Spec, d.Spec.Replicas)
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "a Deployment with two replicas on the control plane", Change: addDeployment(masterRole, 2)},
			{Name: "a Deployment with one replica on the control plane", MustPass: true, Change: addDeployment(masterRole, 1)},
		},
	}
}
