// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/conformance/report"
)

func routerSeveralReplicas() Check {
	return Check{
		ID: "SNO-ING-005", Title: "The default router has several replicas where the infrastructure is highly available", Module: ingress, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ING-2", "two routers where infrastructure is highly available"}, NotApplicable: routerSeveral,
		Run: eachOf(routers(), func(_ *State, d *appsv1.Deployment) []report.Evidence {
			return []report.Evidence{
				found(NameOf(d), "spec.replicas", "at least 2", Replicas(d), Replicas(d) >= 2),
				found(NameOf(d), "status.availableReplicas", "at least 2", d.Status.AvailableReplicas, d.Status.AvailableReplicas >= 2),
			}
		}),
		Controls: []Control{
			{Name: "one replica of the router", Change: onRouter(setReplicas(1))},
			annotated("an annotation on the router", router),
		},
	}
}
