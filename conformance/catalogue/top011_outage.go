// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"cmp"
	"maps"
	"slices"

	"github.com/solonode/sno/conformance/report"
)

func outlastsOutage() Check {
	return Check{
		ID: "SNO-TOP-011", Title: "An outage of the API server is survived, and leader elections are kept", Module: Topology, Level: Core, Tier: Disruptive,
		Requirement: Requirement{"R-OPS-4", "components outlast two minutes without an API server"},
		Needs:       []string{"a provider that can stop the API server"}, Act: StopAPIServer,
		Run: func(in *Input) ([]report.Evidence, error) {
			o := in.Outage
			evidence := []report.Evidence{found("The cluster", "afterwards", "recovered", cmp.Or(o.Failure, "recovered"), o.Failure == "")}
			if o.NewWorkload > 0 {
				const followed = "scheduled and removed"
				evidence = append(evidence, found("A new Deployment", "afterwards", followed, cmp.Or(o.MissingWorkload, followed), o.MissingWorkload == ""))
			}
			for _, name := range slices.Sorted(maps.Keys(o.Leases)) {
				evidence = append(evidence, found("Lease "+name, "spec.holderIdentity", "kept", o.Leases[name], o.Leases[name] == "kept"))
			}
			return evidence, nil
		},
		Figures: func(r Records) []report.Figure {
			figures := []report.Figure{{Name: "API server unavailable", Value: r.Outage.Length, Unit: "s"}, {Name: "recovered after", Value: r.Outage.Recovery, Unit: "s"}}
			if r.Outage.NewWorkload > 0 {
				figures = append(figures, report.Figure{Name: "new workload followed after", Value: r.Outage.NewWorkload, Unit: "s"})
			}
			return figures
		},
		Controls: []Control{
			{Name: "a leader election is lost", Change: func(in *Input) bool { in.Outage.Leases["openshift-control/control"] = "lost"; return true }},
			{Name: "a Deployment does not recover", Change: func(in *Input) bool { in.Outage.Failure = "0 of 1 pods are available"; return true }},
			{Name: "a longer recovery", MustPass: true, Change: func(in *Input) bool { in.Outage.Recovery++; return true }},
			onCluster("the outage is longer than a leader may be without its Lease"),
			onCluster("the controller manager does not return"),
		},
	}
}
