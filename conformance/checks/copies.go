// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/solonode/sno/conformance/report"
)

type workload struct{ namespace, name string }

func (w workload) title() string {
	if w.name == apiServerName {
		return w.namespace + "/" + w.name
	}
	return w.name
}

// Fields of the evidence.
const (
	rolloutField  = "rollout of a copy"
	evictionField = "eviction of every pod of a copy"
	deletionField = "deletion of every pod of a copy"
)

// runCopies copies all existing workloads with pods in parallel. The copy for a control runs only the stage of its
// check.
func runCopies(ctx context.Context, in *Input, workloads []workload, about Stage, evaluate func(*appsv1.Deployment, *CopyResult) []report.Evidence) ([]report.Evidence, error) {
	type outcome struct {
		evidence []report.Evidence
		err      error
	}
	stages := allStages()
	if in.changed {
		stages = []Stage{about}
	}
	outcomes := make([]chan outcome, len(workloads))
	for i, w := range workloads {
		outcomes[i] = make(chan outcome, 1)
		d := in.State.Deployment(w.namespace, w.name)
		if d == nil || replicas(d) == 0 {
			outcomes[i] <- outcome{}
			continue
		}
		go func() {
			result, err := in.Copier.Run(ctx, d, in.State.Budgets, stages)
			if err != nil {
				outcomes[i] <- outcome{err: err}
				return
			}
			outcomes[i] <- outcome{evidence: evaluate(d, result)}
		}()
	}
	var all []report.Evidence
	for _, each := range outcomes {
		o := <-each
		if o.err != nil {
			return all, o.err
		}
		all = append(all, o.evidence...)
	}
	return all, nil
}

func stageEvidence(d *appsv1.Deployment, field, want, failure string) []report.Evidence {
	got := failure
	if got == "" {
		got = want
	}
	return []report.Evidence{found(nameOf(d), field, want, got, failure == "")}
}

func rolloutEvidence(d *appsv1.Deployment, r *CopyResult) []report.Evidence {
	if r.DeployError != "" {
		return stageEvidence(d, rolloutField, "it ends", "the copy does not start: "+r.DeployError)
	}
	return stageEvidence(d, rolloutField, "it ends", r.RolloutError)
}

func evictionEvidence(d *appsv1.Deployment, r *CopyResult) []report.Evidence {
	return stageEvidence(d, evictionField, "each is evicted and replaced", first(r.DeployError, r.RolloutError, r.EvictionError))
}

func first(failure ...string) string {
	for _, s := range failure {
		if s != "" {
			return s
		}
	}
	return ""
}

func deletionEvidence(within func(d *appsv1.Deployment, node string) bool) func(*appsv1.Deployment, *CopyResult) []report.Evidence {
	return func(d *appsv1.Deployment, r *CopyResult) []report.Evidence {
		const want = "each is recreated on a node of its pool"
		if failure := first(r.DeployError, r.RolloutError, r.EvictionError, r.DeletionError); failure != "" {
			return stageEvidence(d, deletionField, want, failure)
		}
		nodes := slices.Concat(r.InitialNodes, r.NodesAfterDeletion)
		wrong := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return within(d, node) })
		if len(wrong) > 0 {
			return stageEvidence(d, deletionField, want, fmt.Sprintf("pods ran on %s", strings.Join(distinct(wrong), ", ")))
		}
		return stageEvidence(d, deletionField, want, "")
	}
}

func distinct(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// copyChecks returns the three checks of copies that modules share. within reports whether a node belongs to the pool.
func copyChecks(module string, prefix string, from int, requirement Requirement, workloads []workload, within func(*State, *appsv1.Deployment, string) bool) []Check {
	id := func(i int) string { return fmt.Sprintf("SNO-%s-%03d", prefix, from+i) }
	applies := func(s *State) string {
		for _, w := range workloads {
			if d := s.Deployment(w.namespace, w.name); d != nil && replicas(d) > 0 {
				return ""
			}
		}
		return "none of its Deployments exists"
	}
	run := func(about Stage, evaluate func(*appsv1.Deployment, *CopyResult) []report.Evidence) func(context.Context, *Input) ([]report.Evidence, error) {
		return func(ctx context.Context, in *Input) ([]report.Evidence, error) {
			return runCopies(ctx, in, workloads, about, evaluate)
		}
	}
	needs := []string{"a scheduler and controllers", "a namespace of its own"}
	return []Check{
		{
			ID: id(0), Title: "A rollout of " + names(workloads) + " ends", Module: module, Requirement: requirement, Level: Core, Tier: Scheduled, Needs: needs, NotApplicable: applies,
			Run: run(Rollout, rolloutEvidence),
			Controls: []Control{
				{Name: "a rollout that cannot end: one pod for each node, required anti-affinity, maxUnavailable 0", Change: blockRollout(workloads)},
				{Name: "strategy Recreate", MustPass: true, Change: onFirst(workloads, recreate)},
			},
		},
		{
			ID: id(1), Title: "Every pod of " + names(workloads) + " can be evicted and is replaced", Module: module, Requirement: requirement, Level: Core, Tier: Scheduled, Needs: needs,
			NotApplicable: applies, Run: run(Eviction, evictionEvidence),
			Controls: []Control{
				{Name: "a budget that allows no disruption", Change: onFirstWorkload(workloads, func(w workload) func(*Input) bool { return forbidEvictions(w.namespace, w.name) })},
				{Name: "a budget that allows one disruption", MustPass: true, Change: onFirstWorkload(workloads, func(w workload) func(*Input) bool {
					return budgetOver(w.namespace, w.name, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})
				})},
			},
		},
		{
			ID: id(2), Title: "A deleted pod of " + names(workloads) + " comes back to its pool", Module: module, Requirement: requirement, Level: Core, Tier: Scheduled, Needs: needs,
			NotApplicable: applies,
			Run: func(ctx context.Context, in *Input) ([]report.Evidence, error) {
				return runCopies(ctx, in, workloads, Deletion, deletionEvidence(func(d *appsv1.Deployment, node string) bool { return within(in.State, d, node) }))
			},
			Controls: []Control{
				{Name: "a node selector that no node has", Change: onFirst(workloads, func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/unknown": ""}
				})},
				{Name: "strategy Recreate", MustPass: true, Change: onFirst(workloads, recreate)},
			},
		},
	}
}

func blockRollout(workloads []workload) func(*Input) bool {
	return func(in *Input) bool {
		nodes, selector := in.State.controlPlaneNodes(), map[string]string{masterRole: ""}
		if len(nodes) == 0 { // External control plane
			nodes, selector = in.State.Nodes, nil
		}
		return onFirst(workloads, func(d *appsv1.Deployment) {
			deadlock(d)
			d.Spec.Template.Spec.NodeSelector = selector
			d.Spec.Replicas = ptr.To(int32(len(nodes))) //nolint:gosec // number of nodes
		})(in)
	}
}

func onFirstWorkload(workloads []workload, change func(workload) func(*Input) bool) func(*Input) bool {
	return func(in *Input) bool {
		for _, w := range workloads {
			if d := in.State.Deployment(w.namespace, w.name); d != nil && replicas(d) > 0 {
				return change(w)(in)
			}
		}
		return false
	}
}

func onFirst(workloads []workload, change func(*appsv1.Deployment)) func(*Input) bool {
	return onFirstWorkload(workloads, func(w workload) func(*Input) bool { return onDeployment(w.namespace, w.name, change) })
}

func names(workloads []workload) string {
	var all []string
	for _, w := range workloads {
		all = append(all, w.title())
	}
	return strings.Join(all, " and ")
}
