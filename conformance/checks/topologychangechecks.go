// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"

	"github.com/solonode/sno/conformance/report"
)

// topologyChangeCheck requires that a module follows a change of the topology and its revert without a restart.
func topologyChangeCheck(id, module string) Check {
	return Check{
		ID: id, Title: "A change of the topology at run time, and the change back, is followed without a restart: " + module, Module: module,
		Requirement: Requirement{"R-SNO-7", "a change of the topology at run time is followed, both ways, without a restart"},
		Level:       Extended, Tier: Disruptive, Topologies: []string{"SingleReplica"},
		Needs: []string{"a provider that can change the topology"},
		MissingInput: func(in *Input) string {
			return unsupported(in.Disruptor.cluster.target.SetTopology == nil, "changes of the topology")
		},
		NotApplicable: func(s *State) string {
			if !single(s.controlPlaneMode()) {
				return "the control plane is not SingleReplica"
			}
			return ""
		},
		Run: func(ctx context.Context, in *Input) ([]report.Evidence, error) {
			changes, err := in.Disruptor.ChangeTopology(ctx)
			if err != nil {
				return nil, err
			}
			change := changes[module]
			return []report.Evidence{convergenceEvidence("to HighlyAvailable", change.Change), convergenceEvidence("back", change.Revert)}, nil
		},
		Figures: func(in *Input) []report.Figure {
			change := in.Disruptor.Results.TopologyChanges[module]
			if change == nil {
				return nil
			}
			return []report.Figure{
				{Name: "followed to HighlyAvailable after", Value: change.Change.Seconds, Unit: "s"}, {Name: "followed back after", Value: change.Revert.Seconds, Unit: "s"},
			}
		},
		Controls: []Control{
			{Name: "a restart is needed", Change: func(in *Input) bool {
				in.Disruptor.Results.TopologyChanges[module].Change.Restarted = true
				return true
			}},
			{Name: "the change back is not followed", Change: func(in *Input) bool {
				in.Disruptor.Results.TopologyChanges[module].Revert.Failure = "two replicas"
				return true
			}},
			{Name: "it takes longer", MustPass: true, Change: func(in *Input) bool { in.Disruptor.Results.TopologyChanges[module].Change.Seconds++; return true }},
			onCluster("its operator and controller do not run until they are restarted"),
		},
	}
}

func convergenceEvidence(which string, f Convergence) report.Evidence {
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

func unsupported(missing bool, what string) string {
	if missing {
		return fmt.Sprintf("the provider does not support %s", what)
	}
	return ""
}
