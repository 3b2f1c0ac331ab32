// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"

	"github.com/solonode/sno/conformance/report"
)

func leavesNothing() Check {
	return Check{
		ID: "SNO-TOP-012", Title: "The run leaves the cluster as it was found", Module: Topology, Level: Core, Tier: Disruptive,
		Requirement: Requirement{"R-SNO-10", "the suite leaves a cluster as it found it"}, Act: CompareStates,
		Run: func(in *Input) ([]report.Evidence, error) {
			const field, same = "before and after", "the same"
			if len(in.Differences) == 0 {
				return []report.Evidence{found("The cluster", field, same, same, true)}, nil
			}
			var evidence []report.Evidence
			for _, what := range in.Differences {
				object, how, _ := strings.Cut(what, ": ")
				evidence = append(evidence, found(object, field, same, how, false))
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "a node stays cordoned", Change: func(in *Input) bool {
				in.Differences = append(in.Differences, "Node control: was unschedulable false, is unschedulable true")
				return true
			}},
			{Name: "no further difference", MustPass: true, Change: func(*Input) bool { return true }},
			onCluster("a client cordons a node during the run"), onCluster("a client leaves a budget"),
		},
	}
}
