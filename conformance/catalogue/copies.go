// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

// operand is what the three checks of copies have in common: SNO-ING-008 to 010, SNO-CON-007 to 009 and SNO-AUT-006 to
// 008.
type operand struct {
	module      string
	requirement Requirement
	workloads   []types.NamespacedName
	// applies is a further Check.NotApplicable.
	applies func(*State) string
	// within reports whether a node belongs to the pool of a Deployment.
	within func(*State, *appsv1.Deployment, *corev1.Node) bool
}

// rollsOut requires that a rollout of a copy ends.
func (o operand) rollsOut(id string) Check {
	c := o.check(id, "A rollout of "+o.names()+" ends", Rollout)
	c.Run = o.run(func(_ *State, d *appsv1.Deployment, r *CopyResult) report.Evidence {
		failure := r.until(Rollout)
		if r.until(Deployed) != "" {
			failure = "the copy does not start: " + failure
		}
		return stageEvidence(d, "rollout of a copy", "it ends", failure)
	})
	c.Controls = []Control{
		{Name: "a rollout that cannot end: one pod for each node, required anti-affinity, maxUnavailable 0", Change: o.onFirst(func(in *Input, w types.NamespacedName) bool {
			nodes, selector := in.State.ControlPlaneNodes(), map[string]string{masterRole: ""}
			if len(nodes) == 0 { // External control plane
				nodes, selector = in.State.Nodes, nil
			}
			return onDeployment(w, func(d *appsv1.Deployment) {
				deadlock(d)
				d.Spec.Template.Spec.NodeSelector = selector
				d.Spec.Replicas = ptr.To(int32(len(nodes))) //nolint:gosec // number of nodes
			})(in)
		})},
		o.recreated(),
	}
	return c
}

// isEvicted requires that every pod of a copy can be evicted, and is replaced.
func (o operand) isEvicted(id string) Check {
	allow := func(n int32) func(*Input) bool {
		return o.onFirst(func(in *Input, w types.NamespacedName) bool {
			return budgetOver(w, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(n))})(in)
		})
	}
	c := o.check(id, "Every pod of "+o.names()+" can be evicted and is replaced", Eviction)
	c.Run = o.run(func(_ *State, d *appsv1.Deployment, r *CopyResult) report.Evidence {
		return stageEvidence(d, "eviction of every pod of a copy", "each is evicted and replaced", r.until(Eviction))
	})
	c.Controls = []Control{
		{Name: "a budget that allows no disruption", Change: allow(0)},
		{Name: "a budget that allows one disruption", MustPass: true, Change: allow(1)},
	}
	return c
}

// comesBack requires that a deleted pod of a copy is replaced on a node of its pool.
func (o operand) comesBack(id string) Check {
	c := o.check(id, "A deleted pod of "+o.names()+" comes back to its pool", Deletion)
	c.Run = o.run(func(s *State, d *appsv1.Deployment, r *CopyResult) report.Evidence {
		failure := r.until(Deletion)
		if failure == "" {
			var wrong []string
			for _, name := range slices.Concat(r.InitialNodes, r.NodesAfterDeletion) {
				if node := s.Node(name); node == nil || !o.within(s, d, node) {
					wrong = append(wrong, name)
				}
			}
			if slices.Sort(wrong); len(wrong) > 0 {
				failure = "pods ran on " + strings.Join(slices.Compact(wrong), ", ")
			}
		}
		return stageEvidence(d, "deletion of every pod of a copy", "each is recreated on a node of its pool", failure)
	})
	c.Controls = []Control{
		{Name: "a node selector that no node has", Change: o.onFirst(func(in *Input, w types.NamespacedName) bool {
			return onDeployment(w, setNodeSelector("node-role.kubernetes.io/unknown"))(in)
		})},
		o.recreated(),
	}
	return c
}

func (o operand) check(id, title string, stage Stage) Check {
	applies := func(s *State) string {
		return unless(slices.ContainsFunc(o.workloads, s.hasPods), "none of its Deployments exists")
	}
	if o.applies != nil {
		applies = firstOf(o.applies, applies)
	}
	return Check{
		ID: id, Title: title, Module: o.module, Requirement: o.requirement, Level: Core, Tier: Scheduled, NotApplicable: applies,
		Needs: []string{"a scheduler and controllers", "a namespace of its own"}, Copies: o.workloads, Stage: stage,
	}
}

func (s *State) hasPods(w types.NamespacedName) bool {
	d := s.Deployment(w.Namespace, w.Name)
	return d != nil && Replicas(d) > 0
}

func (o operand) run(evaluate func(*State, *appsv1.Deployment, *CopyResult) report.Evidence) func(*Input) ([]report.Evidence, error) {
	return func(in *Input) ([]report.Evidence, error) {
		var evidence []report.Evidence
		for _, w := range o.workloads {
			if result := in.Copies[w]; result != nil {
				evidence = append(evidence, evaluate(in.State, in.State.Deployment(w.Namespace, w.Name), result))
			}
		}
		return evidence, nil
	}
}

func stageEvidence(d *appsv1.Deployment, field, want, failure string) report.Evidence {
	return found(NameOf(d), field, want, cmp.Or(failure, want), failure == "")
}

// onFirst changes the first Deployment with pods.
func (o operand) onFirst(change func(*Input, types.NamespacedName) bool) func(*Input) bool {
	return func(in *Input) bool {
		i := slices.IndexFunc(o.workloads, in.State.hasPods)
		return i >= 0 && change(in, o.workloads[i])
	}
}

func (o operand) recreated() Control {
	return Control{Name: "strategy Recreate", MustPass: true, Change: o.onFirst(func(in *Input, w types.NamespacedName) bool {
		return onDeployment(w, recreate)(in)
	})}
}

func (o operand) names() string {
	var all []string
	for _, w := range o.workloads {
		all = append(all, titleOf(w))
	}
	return strings.Join(all, " and ")
}
