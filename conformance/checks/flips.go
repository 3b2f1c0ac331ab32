package checks

import (
	"context"
	"fmt"

	"github.com/solonode/sno/conformance/report"
)

// flipCheck is the check that a module follows a change of the topology and the change back, without a restart: a row of the matrix of
// topology dependencies.
func flipCheck(id, module string) Check {
	return Check{
		ID: id, Title: "A change of the topology at run time, and the change back, is followed without a restart: " + module, Module: module,
		Requirement: Requirement{"R-SNO-7", "a change of the topology at run time is followed, both ways, without a restart"},
		Level:       Extended, Tier: Disruptive, Topologies: []string{"SingleReplica"},
		Needs: []string{"a way to change the topology"},
		Without: func(b *Bench) string {
			return lacks(b.Story.cluster.target.SetTopology == nil, "changing the topology")
		},
		Applies: func(s *State) string {
			if !single(s.controlPlaneMode()) {
				return "clusters only change from SingleReplica"
			}
			return ""
		},
		Run: func(ctx context.Context, b *Bench) ([]report.Evidence, error) {
			flips, err := b.Story.Flip(ctx)
			if err != nil {
				return nil, err
			}
			flip := flips[module]
			return []report.Evidence{following("to HighlyAvailable", flip.There), following("back", flip.Back)}, nil
		},
		Figures: func(b *Bench) []report.Figure {
			flip := b.Story.Told.Flips[module]
			if flip == nil {
				return nil
			}
			return []report.Figure{
				{Name: "followed to HighlyAvailable after", Value: flip.There.Seconds, Unit: "s"}, {Name: "followed back after", Value: flip.Back.Seconds, Unit: "s"},
			}
		},
		Controls: []Control{
			{Name: "it takes a restart", Change: func(b *Bench) bool { b.Story.Told.Flips[module].There.Restarted = true; return true }},
			{Name: "it never goes back", Change: func(b *Bench) bool { b.Story.Told.Flips[module].Back.Wrong = "two replicas"; return true }},
			{Name: "it takes longer", Green: true, Change: func(b *Bench) bool { b.Story.Told.Flips[module].There.Seconds++; return true }},
		},
	}
}

func following(which string, f Following) report.Evidence {
	got := "followed"
	switch {
	case f.Wrong != "" && f.Restarted:
		got = "not even after a restart: " + f.Wrong
	case f.Wrong != "":
		got = "not followed: " + f.Wrong
	case f.Restarted:
		got = "followed after a restart"
	}
	return found("Infrastructure cluster", "status, "+which, "followed", got, got == "followed")
}

func lacks(missing bool, what string) string {
	if missing {
		return fmt.Sprintf("nothing here allows %s", what)
	}
	return ""
}
