// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"maps"
	"slices"

	"github.com/solonode/sno/conformance/report"
)

func idleWrites() Check {
	return Check{
		ID: "SNO-TOP-007", Title: "Nobody writes to operands and operators' objects at rest", Module: Topology, Level: Core, Tier: Scheduled,
		Requirement: Requirement{"R-SNO-4", "at rest nothing is written"}, Act: WatchWrites,
		Run: func(in *Input) ([]report.Evidence, error) {
			const field = "metadata.resourceVersion"
			if len(in.Writes) == 0 {
				return []report.Evidence{found("Operands and operators' objects", field, "unchanged", "unchanged", true)}, nil
			}
			var evidence []report.Evidence
			for _, name := range slices.Sorted(maps.Keys(in.Writes)) {
				evidence = append(evidence, found(name, field, "unchanged", in.Writes[name], false))
			}
			return evidence, nil
		},
		Controls: []Control{
			{Name: "a Deployment is written", Change: func(in *Input) bool { in.Writes["Deployment openshift-ingress/control"] = "written"; return true }},
			{Name: "nothing is written", MustPass: true, Change: func(*Input) bool { return true }},
			onCluster("a client keeps writing to the router's Deployment"), onCluster("a client keeps writing to the IngressController"),
		},
	}
}
