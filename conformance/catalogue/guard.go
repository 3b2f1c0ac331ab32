// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// guard is the Deployment of older releases, which module etcdguard keeps, and the name of its budget.
var guard = types.NamespacedName{Namespace: "openshift-etcd", Name: "etcd-quorum-guard"}

const (
	// guardPrefix begins the names of the guard pods of today's etcd operator, one for each node.
	guardPrefix = "etcd-guard-"
	// operatorBudget is the budget of these pods.
	operatorBudget = "etcd-guard-pdb"
)

func etcdOutside(s *State) string {
	return unless(s.controlPlaneMode() != configv1.ExternalTopologyMode, "etcd runs outside the cluster")
}

// etcdTopologies are those in which etcd has a quorum to lose.
func etcdTopologies() []string {
	return []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica"}
}

func guardNeeded(s *State) string { return firstOf(etcdOutside, exceptSingle)(s) }

func (s *State) guards() []*corev1.Pod {
	return where(s.Pods, func(pod *corev1.Pod) bool {
		return pod.Namespace == guard.Namespace && (strings.HasPrefix(pod.Name, guardPrefix) || strings.HasPrefix(pod.Name, guard.Name))
	})
}

func (s *State) guardBudgets() []*policyv1.PodDisruptionBudget {
	return where(s.Budgets, func(budget *policyv1.PodDisruptionBudget) bool {
		return budget.Namespace == guard.Namespace && (budget.Name == guard.Name || strings.HasPrefix(budget.Name, guardPrefix))
	})
}

func (s *State) members() int {
	n := len(s.ControlPlaneNodes())
	if s.controlPlaneMode() == configv1.HighlyAvailableArbiterMode {
		n += len(s.nodesWith(arbiterRole))
	}
	return n
}
