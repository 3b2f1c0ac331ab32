// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

const (
	moduleEtcdGuard = "etcdguard"
	etcdNamespace   = "openshift-etcd"
	guardDeployment = "etcd-quorum-guard"
	// guardPrefix begins the names of the guard pods of today's etcd operator, one for each node.
	guardPrefix = "etcd-guard-"
	// operatorBudget is the budget of these pods. That of the Deployment has the name of the Deployment.
	operatorBudget = "etcd-guard-pdb"
)

func etcdAbsent(s *State) string {
	if s.controlPlaneMode() == configv1.ExternalTopologyMode {
		return "etcd runs outside the cluster"
	}
	return ""
}

func guardUnneeded(s *State) string {
	if why := etcdAbsent(s); why != "" {
		return why
	}
	if !single(s.controlPlaneMode()) {
		return "the control plane is not SingleReplica"
	}
	return ""
}

func guardNeeded(s *State) string {
	if why := etcdAbsent(s); why != "" {
		return why
	}
	if single(s.controlPlaneMode()) {
		return "the control plane is SingleReplica"
	}
	return ""
}

func (s *State) guards() []corev1.Pod {
	var all []corev1.Pod
	for _, pod := range s.Pods {
		if pod.Namespace == etcdNamespace && (strings.HasPrefix(pod.Name, guardPrefix) || strings.HasPrefix(pod.Name, guardDeployment)) {
			all = append(all, pod)
		}
	}
	return all
}

func (s *State) guardBudgets() []policyv1.PodDisruptionBudget {
	var all []policyv1.PodDisruptionBudget
	for _, budget := range s.Budgets {
		if budget.Namespace == etcdNamespace && (budget.Name == guardDeployment || strings.HasPrefix(budget.Name, guardPrefix)) {
			all = append(all, budget)
		}
	}
	return all
}

func (s *State) members() int {
	n := len(s.controlPlaneNodes())
	if s.controlPlaneMode() == configv1.HighlyAvailableArbiterMode {
		n += len(s.nodesWith(arbiterRole))
	}
	return n
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

func (s *State) guardBudgetName() (string, string) {
	if slices.ContainsFunc(s.guards(), func(pod corev1.Pod) bool { return strings.HasPrefix(pod.Name, guardPrefix) }) {
		return operatorBudget, "the etcd operator creates a guard for each node"
	}
	return guardDeployment, "the Deployment of that name creates the guards"
}

func etcdGuardChecks() []Check {
	size := Requirement{"R-ETC-2", "the quorum guard has the size that the topology asks for, or is off"}
	owner := Requirement{"R-ETC-3", "the etcd operator owns the quorum guard, which the cluster-version-operator hands over"}
	return []Check{
		{
			ID: "SNO-ETC-001", Title: "No quorum guard is left to block drains on a single control-plane node", Module: moduleEtcdGuard, Requirement: size, Level: Core, Tier: Static,
			Topologies: []string{"SingleReplica"}, NotApplicable: guardUnneeded, Run: noGuards,
			Controls: []Control{
				{Name: "a guard of the release", Change: func(in *Input) bool {
					in.State.Deployments = append(in.State.Deployments, newDeployment(etcdNamespace, guardDeployment, 1))
					return true
				}},
				{Name: "a budget without guards", Change: func(in *Input) bool {
					in.State.Budgets = append(in.State.Budgets, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: etcdNamespace, Name: operatorBudget}})
					return true
				}},
				{Name: "another pod in the namespace", MustPass: true, Change: func(in *Input) bool {
					in.State.Pods = append(in.State.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: etcdNamespace, Name: "installer"}})
					return true
				}},
			},
		},
		{
			ID: "SNO-ETC-002", Title: "Every member of etcd has its guard where etcd has a quorum to lose", Module: moduleEtcdGuard, Requirement: size, Level: Core, Tier: Static,
			Topologies: []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica"}, NotApplicable: guardNeeded, Run: guardPerMember,
			Controls: []Control{
				{Name: "a guard is missing", Change: func(in *Input) bool { return dropGuard(in.State) }},
				{Name: "a guard is not ready", Change: func(in *Input) bool {
					return changeGuard(in.State, func(pod *corev1.Pod) { pod.Status.Conditions = nil })
				}},
				{Name: "an annotation on a guard", MustPass: true, Change: func(in *Input) bool {
					return changeGuard(in.State, func(pod *corev1.Pod) {
						pod.Annotations = map[string]string{"example.com/reviewed": "yes"}
					})
				}},
			},
		},
		{
			ID: "SNO-ETC-003", Title: "The guards' budget allows as many disruptions as leave a quorum", Module: moduleEtcdGuard, Requirement: size, Level: Core, Tier: Static,
			Topologies: []string{"HighlyAvailable", "HighlyAvailableArbiter", "DualReplica"}, NotApplicable: guardNeeded, Run: guardBudget,
			Controls: []Control{
				{Name: "the budget allows all disruptions", Change: changeBudget(func(spec *policyv1.PodDisruptionBudgetSpec) {
					*spec = policyv1.PodDisruptionBudgetSpec{Selector: spec.Selector, MaxUnavailable: ptr.To(intstr.FromString("100%"))}
				})},
				{Name: "the budget allows no disruption", Change: changeBudget(func(spec *policyv1.PodDisruptionBudgetSpec) {
					*spec = policyv1.PodDisruptionBudgetSpec{Selector: spec.Selector, MaxUnavailable: ptr.To(intstr.FromInt32(0))}
				})},
				{Name: "a second budget", Change: func(in *Input) bool {
					budgets := in.State.guardBudgets()
					if len(budgets) != 1 {
						return false
					}
					another := budgets[0].DeepCopy()
					another.Name = map[string]string{operatorBudget: guardDeployment, guardDeployment: operatorBudget}[another.Name]
					in.State.Budgets = append(in.State.Budgets, *another)
					return true
				}},
				{Name: "the budget has an unhealthyPodEvictionPolicy", MustPass: true, Change: changeBudget(func(spec *policyv1.PodDisruptionBudgetSpec) {
					spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
				})},
			},
		},
		{
			ID: "SNO-ETC-004", Title: "The quorum guard has a single owner", Module: moduleEtcdGuard, Requirement: owner, Level: Core, Tier: Static, NotApplicable: guardOwned, Run: guardOwner,
			Controls: []Control{
				{Name: "both an operator and the " + versionManager + " write it", Change: func(in *Input) bool {
					d := in.State.Deployment(etcdNamespace, guardDeployment)
					writtenByVersion(d)
					another := d.ManagedFields[len(d.ManagedFields)-1]
					another.Manager = "another"
					d.ManagedFields = append(d.ManagedFields, another)
					in.State.ClusterVersion.Spec.Overrides = nil
					return true
				}},
				{Name: "an annotation", MustPass: true, Change: onDeployment(etcdNamespace, guardDeployment, annotate)},
			},
		},
		topologyChangeCheck("SNO-ETC-005", moduleEtcdGuard),
	}
}

func noGuards(_ context.Context, in *Input) ([]report.Evidence, error) {
	deployed := "none"
	if d := in.State.Deployment(etcdNamespace, guardDeployment); d != nil && replicas(d) > 0 {
		deployed = fmt.Sprintf("%d replicas", replicas(d))
	}
	guards, budgets := len(in.State.guards()), len(in.State.guardBudgets())
	return []report.Evidence{
		found("Deployment "+etcdNamespace+"/"+guardDeployment, "spec.replicas", "none", deployed, deployed == "none"),
		found("Pods of "+etcdNamespace, "guards", "0", guards, guards == 0),
		found("PodDisruptionBudgets of "+etcdNamespace, "guards", "0", budgets, budgets == 0),
	}, nil
}

func guardPerMember(_ context.Context, in *Input) ([]report.Evidence, error) {
	nodes := map[string]bool{}
	for _, pod := range in.State.guards() {
		if podReady(&pod) {
			nodes[pod.Spec.NodeName] = true
		}
	}
	want := in.State.members()
	return []report.Evidence{
		found("Pods of "+etcdNamespace, "ready guards, on different nodes", fmt.Sprint(want), len(nodes), want > 0 && len(nodes) == want),
	}, nil
}

// guardBudget requires exactly one budget: two for the same members would each count on the other.
func guardBudget(_ context.Context, in *Input) ([]report.Evidence, error) {
	budgets := in.State.guardBudgets()
	name, why := in.State.guardBudgetName()
	there := make([]string, len(budgets))
	for i := range budgets {
		there[i] = budgets[i].Name
	}
	slices.Sort(there)
	evidence := []report.Evidence{found("PodDisruptionBudgets of "+etcdNamespace, "guards", "only "+name+": "+why, cmp.Or(strings.Join(there, ", "), "none"), slices.Equal(there, []string{name}))}
	for i := range budgets {
		if budgets[i].Name == name {
			want, why := allowedDisruptions(name, in.State.members())
			got := allowed(&budgets[i], len(in.State.guards()))
			evidence = append(evidence, found("PodDisruptionBudget "+etcdNamespace+"/"+name, "allowed disruptions", fmt.Sprintf("%d: %s", want, why), got, got == want))
		}
	}
	return evidence, nil
}

func allowed(budget *policyv1.PodDisruptionBudget, n int) int {
	switch spec := budget.Spec; {
	case spec.MaxUnavailable != nil:
		return max(0, min(n, scaled(*spec.MaxUnavailable, n)))
	case spec.MinAvailable != nil:
		return max(0, n-scaled(*spec.MinAvailable, n))
	default:
		return 0
	}
}

// scaled rounds percentages up, as the disruption controller does.
func scaled(value intstr.IntOrString, n int) int {
	result, err := intstr.GetScaledValueFromIntOrPercent(&value, n, true)
	if err != nil {
		return 0
	}
	return result
}

func guardOwned(s *State) string {
	if why := guardNeeded(s); why != "" {
		return why
	}
	if s.Deployment(etcdNamespace, guardDeployment) == nil {
		return "no Deployment guards etcd: today's operators create a guard pod for each node"
	}
	return ""
}

// guardOwner requires one writer, apart from a cluster-version-operator whose override is unmanaged.
func guardOwner(_ context.Context, in *Input) ([]report.Evidence, error) {
	d := in.State.Deployment(etcdNamespace, guardDeployment)
	var writers []string
	for _, entry := range d.ManagedFields {
		if entry.Subresource == "" && entry.FieldsV1 != nil && writes(entry.FieldsV1, `"f:replicas"`) {
			if entry.Manager == versionManager && overridden(in.State, "Deployment", etcdNamespace, guardDeployment) {
				continue
			}
			writers = append(writers, entry.Manager)
		}
	}
	slices.Sort(writers)
	writers = slices.Compact(writers)
	return []report.Evidence{found(nameOf(d), "writers of spec.replicas", "1", strings.Join(writers, ", "), len(writers) == 1)}, nil
}

// writes searches the encoded fields: the accessors do not exist in the oldest supported release or are deprecated in
// the newest.
func writes(fields *metav1.FieldsV1, key string) bool {
	encoded, err := fields.MarshalJSON()
	return err == nil && strings.Contains(string(encoded), key)
}

func changeGuard(s *State, change func(*corev1.Pod)) bool {
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.Namespace == etcdNamespace && (strings.HasPrefix(pod.Name, guardPrefix) || strings.HasPrefix(pod.Name, guardDeployment)) {
			change(pod)
			return true
		}
	}
	return false
}

func dropGuard(s *State) bool {
	return changeGuard(s, func(pod *corev1.Pod) { pod.Namespace = "openshift-etcd-operator" })
}

func changeBudget(change func(*policyv1.PodDisruptionBudgetSpec)) func(*Input) bool {
	return func(in *Input) bool {
		for i := range in.State.Budgets {
			budget := &in.State.Budgets[i]
			if budget.Namespace == etcdNamespace && (budget.Name == guardDeployment || strings.HasPrefix(budget.Name, guardPrefix)) {
				change(&budget.Spec)
				return true
			}
		}
		return false
	}
}
