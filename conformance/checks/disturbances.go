package checks

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/solonode/sno/conformance/report"
)

func disturbanceChecks() []Check {
	api := Requirement{"R-OPS-4", "components outlast two minutes without an API server"}
	reboot := Requirement{"R-SUITE-7", "a cluster recovers from a restart of its control-plane node"}
	usual := Requirement{"R-OPS-1", "operators do what they normally do, disruptive changes included"}
	return []Check{
		disturbance("SNO-TOP-008", "A rollout of every operand ends", usual, func(s *Story) disturber { return s.Roll }, func(s *Story) *Disturbance { return s.Told.Rolled }, nil),
		disturbance("SNO-TOP-009", "Every pod of every operand can be evicted and is replaced",
			Requirement{"R-SNO-3", "no budget forbids every eviction, and what was evicted comes back"}, func(s *Story) disturber { return s.Evict },
			func(s *Story) *Disturbance { return s.Told.Evicted }, nil),
		disturbance("SNO-TOP-010", "Operands come back after a restart of every node", reboot, func(s *Story) disturber { return s.Restart },
			func(s *Story) *Disturbance { return s.Told.Restarted }, func(b *Bench) string {
				return lacks(b.Story.cluster.target.RestartNode == nil, "restarting nodes")
			}),
		outageCheck("SNO-TOP-011", api),
		foundCheck("SNO-TOP-012"),
	}
}

type disturber = func(context.Context) (*Disturbance, error)

// disturbance is a check that operands come back from something.
func disturbance(id, title string, asked Requirement, do func(*Story) disturber, told func(*Story) *Disturbance, without func(*Bench) string) Check {
	return Check{
		ID: id, Title: title, Module: moduleTopology, Requirement: asked, Level: Core, Tier: Disruptive, Without: without,
		Applies: func(s *State) string {
			if len(operands(s)) == 0 {
				return "no operand has a pod"
			}
			return ""
		},
		Run: func(ctx context.Context, b *Bench) ([]report.Evidence, error) {
			d, err := do(b.Story)(ctx)
			if err != nil {
				return nil, err
			}
			var evidence []report.Evidence
			for _, o := range d.Operands {
				got := "whole again"
				if o.Wrong != "" {
					got = o.Wrong
				}
				evidence = append(evidence, found(o.Name, "status.availableReplicas, afterwards", "whole again", got, o.Wrong == ""))
			}
			return evidence, nil
		},
		Figures: func(b *Bench) []report.Figure {
			var figures []report.Figure
			if d := told(b.Story); d != nil {
				for _, o := range d.Operands {
					figures = append(figures, report.Figure{Name: "no pod available: " + o.Name, Value: o.Away, Unit: "s"})
				}
			}
			return figures
		},
		Controls: []Control{
			{Name: "one operand does not come back", Change: func(b *Bench) bool { told(b.Story).Operands[0].Wrong = "0 of 1 pods are available"; return true }},
			{Name: "one was away for longer", Green: true, Change: func(b *Bench) bool { told(b.Story).Operands[0].Away++; return true }},
		},
	}
}

func outageCheck(id string, asked Requirement) Check {
	return Check{
		ID: id, Title: "An outage of the API server is survived, and leader elections are kept", Module: moduleTopology, Requirement: asked, Level: Core, Tier: Disruptive,
		Needs:   []string{"a way to stop the API server"},
		Without: func(b *Bench) string { return lacks(b.Story.cluster.target.Outage == nil, "stopping the API server") },
		Run: func(ctx context.Context, b *Bench) ([]report.Evidence, error) {
			outage, err := b.Story.Away(ctx)
			if err != nil {
				return nil, err
			}
			got := "everything as wanted"
			if outage.Wrong != "" {
				got = outage.Wrong
			}
			evidence := []report.Evidence{found("The cluster", "afterwards", "everything as wanted", got, outage.Wrong == "")}
			for _, name := range slices.Sorted(maps.Keys(outage.Leases)) {
				evidence = append(evidence, found("Lease "+name, "spec.holderIdentity", "kept", outage.Leases[name], outage.Leases[name] == "kept"))
			}
			return evidence, nil
		},
		Figures: func(b *Bench) []report.Figure {
			o := b.Story.Told.Outage
			if o == nil {
				return nil
			}
			return []report.Figure{{Name: "API server away", Value: o.Length, Unit: "s"}, {Name: "everything as wanted after", Value: o.Recovery, Unit: "s"}}
		},
		Controls: []Control{
			{Name: "a leader election is lost", Change: func(b *Bench) bool { b.Story.Told.Outage.Leases["openshift-control/control"] = "lost"; return true }},
			{Name: "something does not come back", Change: func(b *Bench) bool { b.Story.Told.Outage.Wrong = "0 of 1 pods are available"; return true }},
			{Name: "it takes longer", Green: true, Change: func(b *Bench) bool { b.Story.Told.Outage.Recovery++; return true }},
		},
	}
}

// foundCheck is the last one: it does everything that can be done to the cluster first.
func foundCheck(id string) Check {
	return Check{
		ID: id, Title: "The run leaves the cluster as it was found", Module: moduleTopology, Requirement: Requirement{"R-SNO-10", "whoever disturbs a cluster leaves it as it was found"}, Level: Core, Tier: Disruptive,
		Run: func(ctx context.Context, b *Bench) ([]report.Evidence, error) {
			left, err := b.Story.Compare(ctx, b.Story.acts(b.State))
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
			{Name: "a node stays cordoned", Change: func(b *Bench) bool {
				b.Story.Told.Left = append(b.Story.Told.Left, "Node control: was unschedulable false, is unschedulable true")
				return true
			}},
			{Name: "nothing more", Green: true, Change: func(b *Bench) bool { return true }},
		},
	}
}

// acts are all that can be done here.
func (s *Story) acts(state *State) []func(context.Context) error {
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
	add(target.SetTopology != nil && single(state.controlPlaneMode()), func(ctx context.Context) error { _, err := s.Flip(ctx); return err })
	add(target.Outage != nil, func(ctx context.Context) error { _, err := s.Away(ctx); return err })
	return all
}
