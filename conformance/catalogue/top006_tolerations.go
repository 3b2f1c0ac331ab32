// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/solonode/sno/conformance/report"
)

func pinnedTolerate() Check {
	return Check{
		ID: "SNO-TOP-006", Title: "Whatever is pinned to the control plane tolerates its taints", Module: Topology, Level: Extended, Tier: Static,
		Requirement: Requirement{"R-SNO-1", "pinned means schedulable"},
		NotApplicable: func(s *State) string {
			return unless(len(pinnedDeployments(s)) > 0, "nothing is pinned to the control plane")
		},
		Run: func(in *Input) ([]report.Evidence, error) {
			var evidence []report.Evidence
			for _, d := range pinnedDeployments(in.State) {
				evidence = append(evidence, toleratesAll(d, closingTaints(in.State))...)
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "a pinned Deployment tolerates nothing", Change: onState(func(s *State) { pinnedDeployments(s)[0].Spec.Template.Spec.Tolerations = nil })},
			{Name: "a Deployment that is not pinned tolerates nothing", MustPass: true, Change: addDeployment(workerRole, 1)},
		},
	}
}

// closingTaints returns the taints of the role on control-plane nodes here, or the one that they get if a worker is
// installed with them.
func closingTaints(s *State) []corev1.Taint {
	var taints []corev1.Taint
	for _, node := range s.ControlPlaneNodes() {
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
