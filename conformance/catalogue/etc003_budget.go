// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

// guardBudget requires exactly one budget: two for the same members would each count on the other.
func guardBudget() Check {
	allow := func(maxUnavailable intstr.IntOrString) func(*Input) bool {
		return onGuardBudget(func(spec *policyv1.PodDisruptionBudgetSpec) {
			*spec = policyv1.PodDisruptionBudgetSpec{Selector: spec.Selector, MaxUnavailable: &maxUnavailable}
		})
	}
	return Check{
		ID: "SNO-ETC-003", Title: "The guards' budget allows as many disruptions as leave a quorum", Module: etcdGuard, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ETC-2", "the quorum guard has the size that the topology asks for, or is off"},
		Topologies:  etcdTopologies(), NotApplicable: guardNeeded,
		Run: func(in *Input) ([]report.Evidence, error) {
			guards, budgets := in.State.guards(), in.State.guardBudgets()
			name, why := guardBudgetName(guards)
			var there []string
			for _, budget := range budgets {
				there = append(there, budget.Name)
			}
			slices.Sort(there)
			evidence := []report.Evidence{
				found("PodDisruptionBudgets of "+guard.Namespace, "guards", "only "+name+": "+why, cmp.Or(strings.Join(there, ", "), "none"), slices.Equal(there, []string{name})),
			}
			for _, budget := range budgets {
				if budget.Name == name {
					want, why := allowedDisruptions(name, in.State.members())
					got := allowed(budget, len(guards))
					evidence = append(evidence, found("PodDisruptionBudget "+guard.Namespace+"/"+name, "allowed disruptions", fmt.Sprintf("%d: %s", want, why), got, got == want))
				}
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "the budget allows all disruptions", Change: allow(intstr.FromString("100%"))},
			{Name: "the budget allows no disruption", Change: allow(intstr.FromInt32(0))},
			{Name: "a second budget", Change: func(in *Input) bool {
				budgets := in.State.guardBudgets()
				if len(budgets) != 1 {
					return false
				}
				another := budgets[0].DeepCopy()
				another.Name = map[string]string{operatorBudget: guard.Name, guard.Name: operatorBudget}[another.Name]
				in.State.Budgets = append(in.State.Budgets, *another)
				return true
			}},
			{Name: "the budget has an unhealthyPodEvictionPolicy", MustPass: true, Change: onGuardBudget(func(spec *policyv1.PodDisruptionBudgetSpec) {
				spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
			})},
		},
	}
}

func guardBudgetName(guards []*corev1.Pod) (string, string) {
	if slices.ContainsFunc(guards, func(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Name, guardPrefix) }) {
		return operatorBudget, "the etcd operator creates a guard for each node"
	}
	return guard.Name, "the Deployment of that name creates the guards"
}

// allowedDisruptions returns how many guards a budget must allow to be unavailable, and why. Today's etcd operator
// allows one of any number of members. The Deployment of older releases, which module etcdguard keeps, allows what
// leaves a quorum; one of two nodes with fencing, because neither could be updated otherwise.
func allowedDisruptions(budget string, members int) (int, string) {
	switch {
	case budget == operatorBudget:
		return 1, "the etcd operator allows one unavailable member of any number"
	case members == 2:
		return 1, "neither of the two nodes could be updated otherwise"
	default:
		return (members - 1) / 2, fmt.Sprintf("leaves a quorum of %d members", members)
	}
}

func onGuardBudget(change func(*policyv1.PodDisruptionBudgetSpec)) func(*Input) bool {
	return func(in *Input) bool {
		budgets := in.State.guardBudgets()
		if len(budgets) == 0 {
			return false
		}
		change(&budgets[0].Spec)
		return true
	}
}
