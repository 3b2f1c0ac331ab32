// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/report"
)

func disruptionChecks() []Check {
	api := Requirement{"R-OPS-4", "components outlast two minutes without an API server"}
	reboot := Requirement{"R-SUITE-7", "a cluster recovers from a restart of its control-plane node"}
	usual := Requirement{"R-OPS-1", "operators do what they normally do, disruptive changes included"}
	return []Check{
		disruptionCheck("SNO-TOP-008", "A rollout of every operand ends", usual, func(d *Disruptor) disruptFunc { return d.Roll },
			func(d *Disruptor) *Disruption { return d.Results.Rollout }, nil,
			onCluster("the new pod needs a node without the old one, which must stay")),
		disruptionCheck("SNO-TOP-009", "Every pod of every operand can be evicted and is replaced",
			Requirement{"R-SNO-3", "no budget forbids every eviction, and evicted pods are replaced"}, func(d *Disruptor) disruptFunc { return d.Evict },
			func(d *Disruptor) *Disruption { return d.Results.Eviction }, nil,
			onCluster("a budget allows no eviction"), onCluster("a quota forbids the replacement of an evicted pod")),
		disruptionCheck("SNO-TOP-010", "Operands come back after a restart of every node", reboot, func(d *Disruptor) disruptFunc { return d.Restart },
			func(d *Disruptor) *Disruption { return d.Results.NodeRestart }, func(in *Input) string {
				return unsupported(in.Disruptor.cluster.target.RestartNode == nil, "restarts of nodes")
			}, onCluster("a node is unschedulable after its restart")),
		outageCheck("SNO-TOP-011", api),
		unchangedCheck("SNO-TOP-012"),
		upgradeCheck("SNO-TOP-014"),
	}
}

type disruptFunc = func(context.Context) (*Disruption, error)

func disruptionCheck(id, title string, requirement Requirement, do func(*Disruptor) disruptFunc, recorded func(*Disruptor) *Disruption, without func(*Input) string, cluster ...Control) Check {
	return Check{
		ID: id, Title: title, Module: moduleTopology, Requirement: requirement, Level: Core, Tier: Disruptive, MissingInput: without,
		NotApplicable: func(s *State) string {
			if len(operands(s)) == 0 {
				return "no operand has pods"
			}
			return ""
		},
		Run: func(ctx context.Context, in *Input) ([]report.Evidence, error) {
			d, err := do(in.Disruptor)(ctx)
			if err != nil {
				return nil, err
			}
			return d.evidence(), nil
		},
		Figures: func(in *Input) []report.Figure { return recorded(in.Disruptor).figures() },
		Controls: append([]Control{
			{Name: "one operand does not recover", Change: func(in *Input) bool {
				recorded(in.Disruptor).Operands[0].Failure = "0 of 1 pods are available"
				return true
			}},
			{Name: "a longer downtime", MustPass: true, Change: func(in *Input) bool { recorded(in.Disruptor).Operands[0].Downtime++; return true }},
		}, cluster...),
	}
}

func (d *Disruption) evidence() []report.Evidence {
	var evidence []report.Evidence
	for _, o := range d.Operands {
		got := "available"
		if o.Failure != "" {
			got = o.Failure
		}
		evidence = append(evidence, found(o.Name, "status.availableReplicas, afterwards", "available", got, o.Failure == ""))
	}
	return evidence
}

func (d *Disruption) figures() []report.Figure {
	if d == nil {
		return nil
	}
	var figures []report.Figure
	for _, o := range d.Operands {
		figures = append(figures, report.Figure{Name: "no pod available: " + o.Name, Value: o.Downtime, Unit: "s"})
	}
	return figures
}

func outageCheck(id string, requirement Requirement) Check {
	return Check{
		ID: id, Title: "An outage of the API server is survived, and leader elections are kept", Module: moduleTopology, Requirement: requirement, Level: Core, Tier: Disruptive,
		Needs: []string{"a provider that can stop the API server"},
		MissingInput: func(in *Input) string {
			return unsupported(in.Disruptor.cluster.target.Outage == nil, "an outage of the API server")
		},
		Run: func(ctx context.Context, in *Input) ([]report.Evidence, error) {
			outage, err := in.Disruptor.InterruptAPIServer(ctx)
			if err != nil {
				return nil, err
			}
			got := "recovered"
			if outage.Failure != "" {
				got = outage.Failure
			}
			evidence := []report.Evidence{found("The cluster", "afterwards", "recovered", got, outage.Failure == "")}
			if outage.NewWorkload > 0 {
				const followed = "scheduled and removed"
				evidence = append(evidence, found("A new Deployment", "afterwards", followed,
					cmp.Or(outage.MissingWorkload, followed), outage.MissingWorkload == ""))
			}
			for _, name := range slices.Sorted(maps.Keys(outage.Leases)) {
				evidence = append(evidence, found("Lease "+name, "spec.holderIdentity", "kept", outage.Leases[name], outage.Leases[name] == "kept"))
			}
			return evidence, nil
		},
		Figures: func(in *Input) []report.Figure {
			o := in.Disruptor.Results.Outage
			if o == nil {
				return nil
			}
			figures := []report.Figure{{Name: "API server unavailable", Value: o.Length, Unit: "s"}, {Name: "recovered after", Value: o.Recovery, Unit: "s"}}
			if o.NewWorkload > 0 {
				figures = append(figures, report.Figure{Name: "new workload followed after", Value: o.NewWorkload, Unit: "s"})
			}
			return figures
		},
		Controls: []Control{
			{Name: "a leader election is lost", Change: func(in *Input) bool {
				in.Disruptor.Results.Outage.Leases["openshift-control/control"] = "lost"
				return true
			}},
			{Name: "a Deployment does not recover", Change: func(in *Input) bool {
				in.Disruptor.Results.Outage.Failure = "0 of 1 pods are available"
				return true
			}},
			{Name: "a longer recovery", MustPass: true, Change: func(in *Input) bool { in.Disruptor.Results.Outage.Recovery++; return true }},
			onCluster("the outage is longer than a leader may be without its Lease"),
			onCluster("the controller manager does not return"),
		},
	}
}

func unchangedCheck(id string) Check {
	return Check{
		ID: id, Title: "The run leaves the cluster as it was found", Module: moduleTopology, Requirement: Requirement{"R-SNO-10", "the suite leaves a cluster as it found it"}, Level: Core, Tier: Disruptive,
		Run: func(ctx context.Context, in *Input) ([]report.Evidence, error) {
			left, err := in.Disruptor.Compare(ctx, in.Disruptor.acts(in.State))
			if err != nil {
				return nil, err
			}
			if len(left) == 0 {
				return []report.Evidence{found("The cluster", "before and after", "the same", "the same", true)}, nil
			}
			var evidence []report.Evidence
			for _, what := range left {
				object, how, _ := strings.Cut(what, ": ")
				evidence = append(evidence, found(object, "before and after", "the same", how, false))
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "a node stays cordoned", Change: func(in *Input) bool {
				in.Disruptor.Results.Differences = append(in.Disruptor.Results.Differences, "Node control: was unschedulable false, is unschedulable true")
				return true
			}},
			{Name: "no further difference", MustPass: true, Change: func(in *Input) bool { return true }},
			onCluster("a client cordons a node during the run"), onCluster("a client leaves a budget"),
		},
	}
}

func (d *Disruptor) acts(state *State) []func(context.Context) error {
	target := d.cluster.target
	var all []func(context.Context) error
	add := func(can bool, do func(context.Context) error) {
		if can {
			all = append(all, do)
		}
	}
	hasOperands := len(operands(state)) > 0
	add(hasOperands, func(ctx context.Context) error { _, err := d.Roll(ctx); return err })
	add(hasOperands, func(ctx context.Context) error { _, err := d.Evict(ctx); return err })
	add(hasOperands && target.RestartNode != nil, func(ctx context.Context) error { _, err := d.Restart(ctx); return err })
	add(target.MayDrain, func(ctx context.Context) error { _, err := d.Drain(ctx); return err })
	add(target.SetTopology != nil && single(state.controlPlaneMode()), func(ctx context.Context) error { _, err := d.ChangeTopology(ctx); return err })
	add(target.Outage != nil, func(ctx context.Context) error { _, err := d.InterruptAPIServer(ctx); return err })
	return all
}
