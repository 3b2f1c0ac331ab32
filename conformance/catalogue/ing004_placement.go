// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/report"
)

func routerPlaced() Check {
	return Check{
		ID: "SNO-ING-004", Title: "The pods of the default router run on control-plane nodes where it is pinned", Module: ingress, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ING-5", "the default IngressController targets the master pool where infrastructureTopology is SingleReplica"}, NotApplicable: routerSingle,
		Run: eachOf(routers(), func(s *State, d *appsv1.Deployment) []report.Evidence {
			pods := s.PodsOf(d)
			right := len(pods) > 0
			for _, pod := range pods {
				node := s.Node(pod.Spec.NodeName)
				right = right && node != nil && onControlPlane(node.Labels)
			}
			return []report.Evidence{found("Pods of "+NameOf(d), "spec.nodeName", "control-plane nodes", nodesOf(pods), right)}
		}),
		Controls: []Control{
			{Name: "its pods run on another node", Change: onPods(router, func(s *State, pod *corev1.Pod) {
				pod.Spec.NodeName = extraNode
				if s.Node(extraNode) == nil {
					addWorker(s)
				}
			})},
			{Name: "another node without a router", MustPass: true, Change: onState(addWorker)},
		},
	}
}
