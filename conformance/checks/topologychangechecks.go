package checks

import (
	"context"
	"fmt"

	"github.com/solonode/sno/conformance/report"
)

// topologyChangeCheck is the check that a module follows a change of the topology and the change back, without a restart: a row of the matrix of
// topology dependencies.
func topologyChangeCheck(id, module string) Check {
	return Check{
		ID: id, Title: "A change of the topology at run time, and the change back, is followed without a restart: " + module, Module: module,
		Requirement: Requirement{"R-SNO-7", "a change of the topology at run time is followed, both ways, without a restart"},
		Level:       Extended, Tier: Disruptive, Topologies: []string{"SingleReplica"},
		Needs: []string{"a way to change the topology"},
		MissingInput: func(b *Environment) string {
			return unsupported(b.Disruptor.cluster.target.SetTopology == nil, "changing the topology")
		},
		NotApplicable: func(s *State) string {
			if !single(s.controlPlaneMode()) {
				return "clusters only change from SingleReplica"
			}
			return ""
		},
		Run: func(ctx context.Context, b *Environment) ([]report.Evidence, error) {
			flips, err := b.Disruptor.ChangeTopology(ctx)
			if err != nil {
				return nil, err
			}
			flip := flips[module]
			return []report.Evidence{convergenceEvidence("to HighlyAvailable", flip.Change), convergenceEvidence("back", flip.Revert)}, nil
		},
		Figures: func(b *Environment) []report.Figure {
			flip := b.Disruptor.Results.TopologyChanges[module]
			if flip == nil {
				return nil
			}
			return []report.Figure{
				{Name: "followed to HighlyAvailable after", Value: flip.Change.Seconds, Unit: "s"}, {Name: "followed back after", Value: flip.Revert.Seconds, Unit: "s"},
			}
		},
		Controls: []Control{
			{Name: "it takes a restart", Change: func(b *Environment) bool {
				b.Disruptor.Results.TopologyChanges[module].Change.Restarted = true
				return true
			}},
			{Name: "it never goes back", Change: func(b *Environment) bool {
				b.Disruptor.Results.TopologyChanges[module].Revert.Failure = "two replicas"
				return true
			}},
			{Name: "it takes longer", MustPass: true, Change: func(b *Environment) bool { b.Disruptor.Results.TopologyChanges[module].Change.Seconds++; return true }},
		},
	}
}

func convergenceEvidence(which string, f Convergence) report.Evidence {
	got := "followed"
	switch {
	case f.Failure != "" && f.Restarted:
		got = "not even after a restart: " + f.Failure
	case f.Failure != "":
		got = "not followed: " + f.Failure
	case f.Restarted:
		got = "followed after a restart"
	}
	return found("Infrastructure cluster", "status, "+which, "followed", got, got == "followed")
}

func unsupported(missing bool, what string) string {
	if missing {
		return fmt.Sprintf("nothing here allows %s", what)
	}
	return ""
}
