// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/report"
)

func knownTopologies() Check {
	return Check{
		ID: "SNO-TOP-001", Title: "The Infrastructure object has a known value for both topologies", Module: Topology, Level: Core, Tier: Static,
		Requirement: Requirement{"R-TOP-5", "the topologies have a defined value for each way to install one control-plane node"},
		Run: func(in *Input) ([]report.Evidence, error) {
			const object = "Infrastructure cluster"
			if in.State.Infrastructure == nil {
				return []report.Evidence{missingObject(object)}, nil
			}
			status := in.State.Infrastructure.Status
			evidence := func(field string, value configv1.TopologyMode) report.Evidence {
				return found(object, field, "a topology of the API", fmt.Sprintf("%q", value), value != "" && known(value) == value)
			}
			return []report.Evidence{
				evidence("status.controlPlaneTopology", status.ControlPlaneTopology), evidence("status.infrastructureTopology", status.InfrastructureTopology),
			}, nil
		},
		Controls: []Control{
			{Name: "an unknown topology", Change: onState(func(s *State) { s.Infrastructure.Status.ControlPlaneTopology = "Twin" })},
			{Name: "no topology", Change: onState(func(s *State) { s.Infrastructure.Status.InfrastructureTopology = "" })},
			{Name: "the object does not exist", Change: onState(func(s *State) { s.Infrastructure = nil })},
			{Name: "a label on the object", MustPass: true, Change: onState(func(s *State) { s.Infrastructure.Labels = map[string]string{"example.com/reviewed": "yes"} })},
		},
	}
}
