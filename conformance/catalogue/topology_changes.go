// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/solonode/sno/conformance/report"

// followsTopology is SNO-ING-011, SNO-ETC-005, SNO-CON-010, SNO-AUT-009 and SNO-APP-004: a module follows a change of
// the topology and its revert without a restart.
func followsTopology(id, module string) Check {
	onChange := func(change func(*TopologyChange)) func(*Input) bool {
		return func(in *Input) bool { change(in.TopologyChanges[module]); return true }
	}
	return Check{
		ID: id, Title: "A change of the topology at run time, and the change back, is followed without a restart: " + module, Module: module,
		Requirement: Requirement{"R-SNO-7", "a change of the topology at run time is followed, both ways, without a restart"},
		Level:       Extended, Tier: Disruptive, Topologies: []string{"SingleReplica"},
		Needs: []string{"a provider that can change the topology"}, NotApplicable: onlySingle, Act: ChangeTopology,
		Run: func(in *Input) ([]report.Evidence, error) {
			change := in.TopologyChanges[module]
			return []report.Evidence{convergence("to HighlyAvailable", change.Change), convergence("back", change.Revert)}, nil
		},
		Figures: func(r Records) []report.Figure {
			change := r.TopologyChanges[module]
			return []report.Figure{
				{Name: "followed to HighlyAvailable after", Value: change.Change.Seconds, Unit: "s"}, {Name: "followed back after", Value: change.Revert.Seconds, Unit: "s"},
			}
		},
		Controls: []Control{
			{Name: "a restart is needed", Change: onChange(func(c *TopologyChange) { c.Change.Restarted = true })},
			{Name: "the change back is not followed", Change: onChange(func(c *TopologyChange) { c.Revert.Failure = "two replicas" })},
			{Name: "it takes longer", MustPass: true, Change: onChange(func(c *TopologyChange) { c.Change.Seconds++ })},
			onCluster("its operator and controller do not run until they are restarted"),
		},
	}
}

func convergence(which string, f Convergence) report.Evidence {
	got := "followed"
	switch {
	case f.Failure != "" && f.Restarted:
		got = "not followed after a restart: " + f.Failure
	case f.Failure != "":
		got = "not followed: " + f.Failure
	case f.Restarted:
		got = "followed after a restart"
	}
	return found("Infrastructure cluster", "status, "+which, "followed", got, got == "followed")
}
