// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/report"
)

// routerTolerates includes the IngressController if that pins: stock operators copy its tolerations.
func routerTolerates() Check {
	return Check{
		ID: "SNO-ING-003", Title: "The pinned router tolerates the taints of control-plane nodes", Module: ingress, Level: Core, Tier: Static,
		Requirement: Requirement{"R-SNO-1", "what is pinned to the control plane tolerates its taints"}, NotApplicable: routerSingle,
		Run: eachOf(routers(), func(s *State, d *appsv1.Deployment) []report.Evidence {
			evidence := toleratesAll(d, controlPlaneTaints())
			if onControlPlane(placement(s)) {
				tolerations := s.IngressController.Spec.NodePlacement.Tolerations
				evidence = append(evidence, toleration(RouterController, "spec.nodePlacement.tolerations", tolerations, controlPlaneTaints())...)
			}
			return evidence
		}),
		Controls: []Control{
			{Name: "the router tolerates nothing", Change: onRouter(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = nil })},
			{Name: "the IngressController that pins it tolerates nothing", Change: onState(pinController)},
			{Name: "the router has one more toleration", MustPass: true, Change: onRouter(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "example.com/more", Operator: corev1.TolerationOpExists})
			})},
		},
	}
}
