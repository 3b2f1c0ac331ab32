// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"maps"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

func budgetsAllow() Check {
	onAnyDeployment := func(spec policyv1.PodDisruptionBudgetSpec) func(*Input) bool {
		return func(in *Input) bool {
			for _, d := range in.State.Deployments {
				if d.Namespace != guard.Namespace && Replicas(&d) > 0 {
					return budgetOver(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, spec)(in)
				}
			}
			return false
		}
	}
	return Check{
		ID: "SNO-TOP-005", Title: "No disruption budget of OpenShift forbids every eviction of healthy pods", Module: Topology, Level: Core, Tier: Static,
		Requirement: Requirement{"R-SNO-3", "no budget forbids every eviction of healthy pods"},
		NotApplicable: func(s *State) string {
			return unless(len(budgetedEvictions(s)) > 0, "no budget covers a Deployment of OpenShift")
		},
		Run: func(in *Input) ([]report.Evidence, error) {
			evictions := budgetedEvictions(in.State)
			var evidence []report.Evidence
			for _, name := range slices.Sorted(maps.Keys(evictions)) {
				evidence = append(evidence, found(name, "evictions of healthy pods", "at least 1", evictions[name], evictions[name] >= 1))
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "a budget that requires all replicas", Change: onAnyDeployment(policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("100%"))})},
			{Name: "a budget that allows one disruption", MustPass: true, Change: onAnyDeployment(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})},
		},
	}
}

// budgetedEvictions leaves out etcd, whose guards have their own check.
func budgetedEvictions(s *State) map[string]int {
	evictions := map[string]int{}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		if d.Namespace == guard.Namespace || Replicas(d) == 0 {
			continue
		}
		for j := range s.Budgets {
			if Covers(&s.Budgets[j], d) {
				name := "PodDisruptionBudget " + s.Budgets[j].Namespace + "/" + s.Budgets[j].Name
				evictions[name] = allowed(&s.Budgets[j], int(Replicas(d)))
			}
		}
	}
	return evictions
}
