// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/solonode/sno/conformance/report"
)

func routerUnpinned() Check {
	return Check{
		ID: "SNO-ING-006", Title: "No pin is left on the router where the infrastructure is highly available", Module: ingress, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ING-6", "the pool is worker where infrastructureTopology is HighlyAvailable"},
		NotApplicable: firstOf(routerSeveral, func(s *State) string {
			return unless(s.Ingress == nil || s.Ingress.Status.DefaultPlacement != "ControlPlane", "defaultPlacement is ControlPlane")
		}),
		Run: eachOf(routers(), func(s *State, d *appsv1.Deployment) []report.Evidence {
			const want = "no control-plane role"
			custom, selector := placement(s), d.Spec.Template.Spec.NodeSelector
			return []report.Evidence{
				found(RouterController, "spec.nodePlacement.nodeSelector", want, keysOf(custom), !onControlPlane(custom)),
				found(NameOf(d), "spec.template.spec.nodeSelector", want, keysOf(selector), !onControlPlane(selector)),
			}
		}),
		Controls: []Control{
			{Name: "the IngressController selects the control plane", Change: onState(pinController)},
			{Name: "the router selects the control plane", Change: onRouter(setNodeSelector(masterRole))},
			annotated("an annotation on the router", router),
		},
	}
}
