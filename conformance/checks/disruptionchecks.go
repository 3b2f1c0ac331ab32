package checks

import (
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
		disruptionCheck("SNO-TOP-008", "A rollout of every operand ends", usual, func(s *Disruptor) disruptFunc { return s.Roll }, func(s *Disruptor) *Disruption { return s.Results.Rollout }, nil),
		disruptionCheck("SNO-TOP-009", "Every pod of every operand can be evicted and is replaced",
			Requirement{"R-SNO-3", "no budget forbids every eviction, and what was evicted comes back"}, func(s *Disruptor) disruptFunc { return s.Evict },
			func(s *Disruptor) *Disruption { return s.Results.Eviction }, nil),
		disruptionCheck("SNO-TOP-010", "Operands come back after a restart of every node", reboot, func(s *Disruptor) disruptFunc { return s.Restart },
			func(s *Disruptor) *Disruption { return s.Results.NodeRestart }, func(b *Environment) string {
				return unsupported(b.Disruptor.cluster.target.RestartNode == nil, "restarting nodes")
			}),
		outageCheck("SNO-TOP-011", api),
		unchangedCheck("SNO-TOP-012"),
	}
}

type disruptFunc = func(context.Context) (*Disruption, error)

// disruptionCheck is a check that operands come back from something.
func disruptionCheck(id, title string, asked Requirement, do func(*Disruptor) disruptFunc, told func(*Disruptor) *Disruption, without func(*Environment) string) Check {
	return Check{
		ID: id, Title: title, Module: moduleTopology, Requirement: asked, Level: Core, Tier: Disruptive, MissingInput: without,
		NotApplicable: func(s *State) string {
			if len(operands(s)) == 0 {
				return "no operand has a pod"
			}
			return ""
		},
		Run: func(ctx context.Context, b *Environment) ([]report.Evidence, error) {
			d, err := do(b.Disruptor)(ctx)
			if err != nil {
				return nil, err
			}
			var evidence []report.Evidence
			for _, o := range d.Operands {
				got := "whole again"
				if o.Failure != "" {
					got = o.Failure
				}
				evidence = append(evidence, found(o.Name, "status.availableReplicas, afterwards", "whole again", got, o.Failure == ""))
			}
			return evidence, nil
		},
		Figures: func(b *Environment) []report.Figure {
			var figures []report.Figure
			if d := told(b.Disruptor); d != nil {
				for _, o := range d.Operands {
					figures = append(figures, report.Figure{Name: "no pod available: " + o.Name, Value: o.Downtime, Unit: "s"})
				}
			}
			return figures
		},
		Controls: []Control{
			{Name: "one operand does not come back", Change: func(b *Environment) bool {
				told(b.Disruptor).Operands[0].Failure = "0 of 1 pods are available"
				return true
			}},
			{Name: "one was away for longer", MustPass: true, Change: func(b *Environment) bool { told(b.Disruptor).Operands[0].Downtime++; return true }},
		},
	}
}

func outageCheck(id string, asked Requirement) Check {
	return Check{
		ID: id, Title: "An outage of the API server is survived, and leader elections are kept", Module: moduleTopology, Requirement: asked, Level: Core, Tier: Disruptive,
		Needs: []string{"a way to stop the API server"},
		MissingInput: func(b *Environment) string {
			return unsupported(b.Disruptor.cluster.target.Outage == nil, "stopping the API server")
		},
		Run: func(ctx context.Context, b *Environment) ([]report.Evidence, error) {
			outage, err := b.Disruptor.InterruptAPIServer(ctx)
			if err != nil {
				return nil, err
			}
			got := "everything as wanted"
			if outage.Failure != "" {
				got = outage.Failure
			}
			evidence := []report.Evidence{found("The cluster", "afterwards", "everything as wanted", got, outage.Failure == "")}
			for _, name := range slices.Sorted(maps.Keys(outage.Leases)) {
				evidence = append(evidence, found("Lease "+name, "spec.holderIdentity", "kept", outage.Leases[name], outage.Leases[name] == "kept"))
			}
			return evidence, nil
		},
		Figures: func(b *Environment) []report.Figure {
			o := b.Disruptor.Results.Outage
			if o == nil {
				return nil
			}
			return []report.Figure{{Name: "API server away", Value: o.Length, Unit: "s"}, {Name: "everything as wanted after", Value: o.Recovery, Unit: "s"}}
		},
		Controls: []Control{
			{Name: "a leader election is lost", Change: func(b *Environment) bool {
				b.Disruptor.Results.Outage.Leases["openshift-control/control"] = "lost"
				return true
			}},
			{Name: "something does not come back", Change: func(b *Environment) bool {
				b.Disruptor.Results.Outage.Failure = "0 of 1 pods are available"
				return true
			}},
			{Name: "it takes longer", MustPass: true, Change: func(b *Environment) bool { b.Disruptor.Results.Outage.Recovery++; return true }},
		},
	}
}

// unchangedCheck is the last one: it does everything that can be done to the cluster first.
func unchangedCheck(id string) Check {
	return Check{
		ID: id, Title: "The run leaves the cluster as it was found", Module: moduleTopology, Requirement: Requirement{"R-SNO-10", "whoever disturbs a cluster leaves it as it was found"}, Level: Core, Tier: Disruptive,
		Run: func(ctx context.Context, b *Environment) ([]report.Evidence, error) {
			left, err := b.Disruptor.Compare(ctx, b.Disruptor.acts(b.State))
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
			{Name: "a node stays cordoned", Change: func(b *Environment) bool {
				b.Disruptor.Results.Differences = append(b.Disruptor.Results.Differences, "Node control: was unschedulable false, is unschedulable true")
				return true
			}},
			{Name: "nothing more", MustPass: true, Change: func(b *Environment) bool { return true }},
		},
	}
}

// acts are all that can be done here.
func (s *Disruptor) acts(state *State) []func(context.Context) error {
	target := s.cluster.target
	var all []func(context.Context) error
	add := func(can bool, do func(context.Context) error) {
		if can {
			all = append(all, do)
		}
	}
	whole := len(operands(state)) > 0
	add(whole, func(ctx context.Context) error { _, err := s.Roll(ctx); return err })
	add(whole, func(ctx context.Context) error { _, err := s.Evict(ctx); return err })
	add(whole && target.RestartNode != nil, func(ctx context.Context) error { _, err := s.Restart(ctx); return err })
	add(target.MayDrain, func(ctx context.Context) error { _, err := s.Drain(ctx); return err })
	add(target.SetTopology != nil && single(state.controlPlaneMode()), func(ctx context.Context) error { _, err := s.ChangeTopology(ctx); return err })
	add(target.Outage != nil, func(ctx context.Context) error { _, err := s.InterruptAPIServer(ctx); return err })
	return all
}
