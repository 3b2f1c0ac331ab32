// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/report"
)

func routerPinned() Check {
	return Check{
		ID: "SNO-ING-002", Title: "The default router is pinned to the control plane where the infrastructure is not highly available", Module: ingress, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ING-5", "the default IngressController targets the master pool where infrastructureTopology is SingleReplica"}, NotApplicable: routerSingle,
		Run: eachOf(routers(), func(_ *State, d *appsv1.Deployment) []report.Evidence {
			selector := d.Spec.Template.Spec.NodeSelector
			return []report.Evidence{found(NameOf(d), "spec.template.spec.nodeSelector", "the role master or control-plane", keysOf(selector), onControlPlane(selector))}
		}),
		Controls: []Control{
			{Name: "the router selects workers", Change: onRouter(setNodeSelector(workerRole))},
			{Name: "the router also selects an operating system", MustPass: true, Change: onRouter(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.NodeSelector = maps.Clone(d.Spec.Template.Spec.NodeSelector)
				d.Spec.Template.Spec.NodeSelector[corev1.LabelOSStable] = "linux"
			})},
		},
	}
}
