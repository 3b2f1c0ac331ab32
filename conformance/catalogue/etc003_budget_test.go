// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

func TestAllowed(t *testing.T) {
	for name, test := range map[string]struct {
		spec    policyv1.PodDisruptionBudgetSpec
		n, want int
	}{
		"one of three":           {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))}, 3, 1},
		"none":                   {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))}, 3, 0},
		"half of three":          {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromString("50%"))}, 3, 2},
		"two must remain":        {policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2))}, 3, 1},
		"more than exist":        {policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(5))}, 3, 0},
		"all must remain":        {policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromString("100%"))}, 1, 0},
		"an empty specification": {policyv1.PodDisruptionBudgetSpec{}, 3, 0},
	} {
		if got := allowed(&policyv1.PodDisruptionBudget{Spec: test.spec}, test.n); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestGuardBudget: the evidence contains the wanted budget, its size, and why.
func TestGuardBudget(t *testing.T) {
	both := operatorBudget + "," + guard.Name
	for name, test := range map[string]struct {
		guards, budgets    string
		allowedDisruptions int32
		members            int
		wants              []string
		held               bool
	}{
		"the operator's":                    {guardPrefix, operatorBudget, 1, 3, []string{"only etcd-guard-pdb: the etcd operator", "1: the etcd operator allows one"}, true},
		"the operator's, of five":           {guardPrefix, operatorBudget, 1, 5, []string{"1: the etcd operator allows one unavailable member of any number"}, true},
		"the operator's, of five, two":      {guardPrefix, operatorBudget, 2, 5, []string{"1: the etcd operator"}, false},
		"the Deployment's":                  {guard.Name + "-", guard.Name, 1, 3, []string{"only etcd-quorum-guard: the Deployment", "1: leaves a quorum of 3 members"}, true},
		"the Deployment's, of five":         {guard.Name + "-", guard.Name, 2, 5, []string{"2: leaves a quorum of 5 members"}, true},
		"the Deployment's, of two":          {guard.Name + "-", guard.Name, 1, 2, []string{"1: neither of the two nodes"}, true},
		"the Deployment's, of five, one":    {guard.Name + "-", guard.Name, 1, 5, []string{"2: leaves"}, false},
		"both, over the operator's guards":  {guardPrefix, both, 1, 3, []string{"only etcd-guard-pdb"}, false},
		"both, over the Deployment's":       {guard.Name + "-", both, 1, 3, []string{"only etcd-quorum-guard"}, false},
		"the Deployment's, over operator's": {guardPrefix, guard.Name, 1, 3, []string{"only etcd-guard-pdb"}, false},
		"none":                              {guardPrefix, "", 1, 3, []string{"only etcd-guard-pdb"}, false},
	} {
		state := &State{}
		for i := range test.members {
			node := fmt.Sprintf("node-%d", i)
			state.Nodes = append(state.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{masterRole: ""}}})
			state.Pods = append(state.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: guard.Namespace, Name: test.guards + node}})
		}
		for _, budget := range strings.FieldsFunc(test.budgets, func(r rune) bool { return r == ',' }) {
			state.Budgets = append(state.Budgets, policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: guard.Namespace, Name: budget},
				Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(test.allowedDisruptions))},
			})
		}
		evidence, err := guardBudget().Run(&Input{State: state})
		if err != nil || (report.FirstFailure(evidence) == "") != test.held {
			t.Errorf("%s: %v %+v", name, err, evidence)
		}
		got := ""
		for _, e := range evidence {
			got += e.Want + "; "
		}
		for _, want := range test.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: wants %s, want %q in it", name, got, want)
			}
		}
	}
}
