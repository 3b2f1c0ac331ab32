// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/conformance/report"
)

func noGuard() Check {
	return Check{
		ID: "SNO-ETC-001", Title: "No quorum guard is left to block drains on a single control-plane node", Module: etcdGuard, Level: Core, Tier: Static,
		Requirement: Requirement{"R-ETC-2", "the quorum guard has the size that the topology asks for, or is off"},
		Topologies:  []string{"SingleReplica"}, NotApplicable: firstOf(etcdOutside, onlySingle),
		Run: func(in *Input) ([]report.Evidence, error) {
			deployed := "none"
			if d := in.State.Deployment(guard.Namespace, guard.Name); d != nil && Replicas(d) > 0 {
				deployed = fmt.Sprintf("%d replicas", Replicas(d))
			}
			guards, budgets := len(in.State.guards()), len(in.State.guardBudgets())
			return []report.Evidence{
				found("Deployment "+guard.String(), "spec.replicas", "none", deployed, deployed == "none"),
				found("Pods of "+guard.Namespace, "guards", "0", guards, guards == 0),
				found("PodDisruptionBudgets of "+guard.Namespace, "guards", "0", budgets, budgets == 0),
			}, nil
		},
		Controls: []Control{
			{Name: "a guard of the release", Change: onState(func(s *State) {
				s.Deployments = append(s.Deployments, newDeployment(guard.Namespace, guard.Name, 1))
			})},
			{Name: "a budget without guards", Change: onState(func(s *State) {
				s.Budgets = append(s.Budgets, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: guard.Namespace, Name: operatorBudget}})
			})},
			{Name: "another pod in the namespace", MustPass: true, Change: onState(func(s *State) {
				s.Pods = append(s.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: guard.Namespace, Name: "installer"}})
			})},
		},
	}
}
