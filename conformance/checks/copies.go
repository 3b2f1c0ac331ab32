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

// workload names a Deployment of a module.
type workload struct{ namespace, name string }

// title is its name in titles, with the namespace where the name is that of several Deployments.
func (w workload) title() string {
	if w.name == apiServerName {
		return w.namespace + "/" + w.name
	}
	return w.name
}

// What each copied Deployment is asked, as the field of the evidence.
const (
	rolloutField  = "rollout of a copy"
	evictionField = "eviction of every pod of a copy"
	deletionField = "deletion of every pod of a copy"
)

// runCopies has the Deployments among the workloads that are there and have pods go through their journeys, side by side.
//
// What a control has changed goes through the stage that its check is about and no other.
func runCopies(ctx context.Context, b *Environment, workloads []workload, about Stage, evaluate func(*appsv1.Deployment, *CopyResult) []report.Evidence) ([]report.Evidence, error) {
	type outcome struct {
		evidence []report.Evidence
		err      error
	}
	stages := allStages()
	if b.changed {
		stages = []Stage{about}
	}
	outcomes := make([]chan outcome, len(workloads))
	for i, w := range workloads {
		outcomes[i] = make(chan outcome, 1)
		d := b.State.Deployment(w.namespace, w.name)
		if d == nil || replicas(d) == 0 {
			outcomes[i] <- outcome{}
			continue
		}
		go func() {
			journey, err := b.Copier.Run(ctx, d, b.State.Budgets, stages)
			if err != nil {
				outcomes[i] <- outcome{err: err}
				return
			}
			outcomes[i] <- outcome{evidence: evaluate(d, journey)}
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

// stage is the evidence of one stage of a journey. Where an earlier one did not end there is nothing to say, and that is not well either.
func stage(d *appsv1.Deployment, field, want, said string) []report.Evidence {
	got := said
	if got == "" {
		got = want
	}
	return []report.Evidence{found(nameOf(d), field, want, got, said == "")}
}

func rolled(d *appsv1.Deployment, j *CopyResult) []report.Evidence {
	if j.DeployError != "" {
		return stage(d, rolloutField, "it ends", "the copy does not even start: "+j.DeployError)
	}
	return stage(d, rolloutField, "it ends", j.RolloutError)
}

func evicted(d *appsv1.Deployment, j *CopyResult) []report.Evidence {
	return stage(d, evictionField, "each is let go and replaced", first(j.DeployError, j.RolloutError, j.EvictionError))
}

func first(said ...string) string {
	for _, s := range said {
		if s != "" {
			return s
		}
	}
	return ""
}

// deletionEvidence is about where pods came back to; within says whether a node is right.
func deletionEvidence(within func(d *appsv1.Deployment, node string) bool) func(*appsv1.Deployment, *CopyResult) []report.Evidence {
	return func(d *appsv1.Deployment, j *CopyResult) []report.Evidence {
		const want = "each comes back to a node of its pool, every time"
		if said := first(j.DeployError, j.RolloutError, j.EvictionError, j.DeletionError); said != "" {
			return stage(d, deletionField, want, said)
		}
		nodes := slices.Concat(j.InitialNodes, j.NodesAfterDeletion)
		wrong := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return within(d, node) })
		if len(wrong) > 0 {
			return stage(d, deletionField, want, fmt.Sprintf("pods were on %s", strings.Join(distinct(wrong), ", ")))
		}
		return stage(d, deletionField, want, "")
	}
}

func distinct(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// copyChecks are the three checks that every module has about copies of its Deployments. within says whether a node is one of the pool.
func copyChecks(module string, prefix string, from int, asked Requirement, workloads []workload, within func(*State, *appsv1.Deployment, string) bool) []Check {
	id := func(i int) string { return fmt.Sprintf("SNO-%s-%03d", prefix, from+i) }
	applies := func(s *State) string {
		for _, w := range workloads {
			if d := s.Deployment(w.namespace, w.name); d != nil && replicas(d) > 0 {
				return ""
			}
		}
		return "none of its Deployments is there"
	}
	run := func(about Stage, evaluate func(*appsv1.Deployment, *CopyResult) []report.Evidence) func(context.Context, *Environment) ([]report.Evidence, error) {
		return func(ctx context.Context, b *Environment) ([]report.Evidence, error) {
			return runCopies(ctx, b, workloads, about, evaluate)
		}
	}
	needs := []string{"a scheduler and controllers that work", "a namespace of its own"}
	return []Check{
		{
			ID: id(0), Title: "A rollout of " + names(workloads) + " ends", Module: module, Requirement: asked, Level: Core, Tier: Scheduled, Needs: needs, NotApplicable: applies,
			Run: run(Rollout, rolled),
			Controls: []Control{
				{Name: "as many pods as nodes, which may neither share one nor go first", Change: blockRollout(workloads)},
				{Name: "all pods are replaced at once", MustPass: true, Change: onFirst(workloads, recreate)},
			},
		},
		{
			ID: id(1), Title: "Every pod of " + names(workloads) + " can be evicted and is replaced", Module: module, Requirement: asked, Level: Core, Tier: Scheduled, Needs: needs,
			NotApplicable: applies, Run: run(Eviction, evicted),
			Controls: []Control{
				{Name: "a budget that lets none go", Change: onFirstWorkload(workloads, func(w workload) func(*Environment) bool { return forbidEvictions(w.namespace, w.name) })},
				{Name: "a budget that lets one go", MustPass: true, Change: onFirstWorkload(workloads, func(w workload) func(*Environment) bool {
					return budgetOver(w.namespace, w.name, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(1))})
				})},
			},
		},
		{
			ID: id(2), Title: "A deleted pod of " + names(workloads) + " comes back to its pool", Module: module, Requirement: asked, Level: Core, Tier: Scheduled, Needs: needs,
			NotApplicable: applies,
			Run: func(ctx context.Context, b *Environment) ([]report.Evidence, error) {
				return runCopies(ctx, b, workloads, Deletion, deletionEvidence(func(d *appsv1.Deployment, node string) bool { return within(b.State, d, node) }))
			},
			Controls: []Control{
				{Name: "no node has the role that it selects", Change: onFirst(workloads, func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.NodeSelector = map[string]string{"node-role.kubernetes.io/nobody": ""}
				})},
				{Name: "all pods are replaced at once", MustPass: true, Change: onFirst(workloads, recreate)},
			},
		},
	}
}

// blockRollout makes the first Deployment one whose rollout cannot end.
func blockRollout(workloads []workload) func(*Environment) bool {
	return func(b *Environment) bool {
		nodes, selector := b.State.controlPlaneNodes(), map[string]string{masterRole: ""}
		if len(nodes) == 0 { // the control plane is elsewhere
			nodes, selector = b.State.Nodes, nil
		}
		return onFirst(workloads, func(d *appsv1.Deployment) {
			deadlock(d)
			d.Spec.Template.Spec.NodeSelector = selector
			d.Spec.Replicas = ptr.To(int32(len(nodes))) //nolint:gosec // of a cluster
		})(b)
	}
}

// onFirstWorkload makes a change of the first Deployment that is there.
func onFirstWorkload(workloads []workload, change func(workload) func(*Environment) bool) func(*Environment) bool {
	return func(b *Environment) bool {
		for _, w := range workloads {
			if d := b.State.Deployment(w.namespace, w.name); d != nil && replicas(d) > 0 {
				return change(w)(b)
			}
		}
		return false
	}
}

func onFirst(workloads []workload, change func(*appsv1.Deployment)) func(*Environment) bool {
	return onFirstWorkload(workloads, func(w workload) func(*Environment) bool { return onDeployment(w.namespace, w.name, change) })
}

func names(workloads []workload) string {
	var all []string
	for _, w := range workloads {
		all = append(all, w.title())
	}
	return strings.Join(all, " and ")
}
