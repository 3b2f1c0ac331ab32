// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/conformance/report"
)

func routersSpread() Check {
	return Check{
		ID: "SNO-ING-007", Title: "Routers run on different nodes where the infrastructure is highly available", Module: ingress, Level: Core, Tier: Static,
		Requirement: Requirement{"R-SNO-11", "HighlyAvailable means several replicas on different nodes"}, NotApplicable: routerSeveral,
		Run: eachOf(routers(), func(s *State, d *appsv1.Deployment) []report.Evidence {
			rule, spread := separated(s, d)
			return []report.Evidence{spread, rule}
		}),
		Controls: []Control{
			{Name: "no rule for different nodes", Change: onRouter(removeSeparation)},
			{Name: "all its pods on one node", Change: movePodsToOneNode(router)},
			annotated("an annotation on the router", router),
		},
	}
}
