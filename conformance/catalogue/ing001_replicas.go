// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/conformance/report"
)

func routerReplicas() Check {
	return Check{
		ID: "SNO-ING-001", Title: "The default router has a single replica where the infrastructure is not highly available", Module: ingress, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ING-1", "one router where the high-availability mode is None"}, NotApplicable: routerSingle,
		Run: eachOf(routers(), func(s *State, d *appsv1.Deployment) []report.Evidence {
			evidence := []report.Evidence{found(NameOf(d), "spec.replicas", "1", Replicas(d), Replicas(d) == 1)}
			if wanted := s.IngressController.Spec.Replicas; wanted != nil {
				evidence = append(evidence, found(RouterController, "spec.replicas", "1 or not set", *wanted, *wanted == 1))
			}
			return evidence
		}),
		Controls: []Control{
			{Name: "two replicas of the router", Change: onRouter(setReplicas(2))},
			annotated("an annotation on the router", router),
		},
	}
}
