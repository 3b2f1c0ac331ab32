// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solonode/sno/topology"
)

func TestFindings(t *testing.T) {
	const (
		controlPlane = "status.controlPlaneTopology"
		infra        = "status.infrastructureTopology"
		mode         = "status.highAvailabilityMode"
	)
	filled := clusterOf(empty, ha)
	filled.ControlPlane.Mode = sr
	declared := func(cluster topology.Cluster, mode topology.HighAvailabilityMode) topology.Cluster {
		cluster.Declared = mode
		return cluster
	}
	for name, test := range map[string]struct {
		cluster topology.Cluster
		want    []topology.Finding
		text    []string
	}{
		"clear":                         {cluster: clusterOf(sr, ha)},
		"clear with a mode that agrees": {cluster: declared(clusterOf(sr, ha), "None")},
		"external is clear":             {cluster: declared(clusterOf(external, ha), "Full")},
		"arbiters are clear":            {cluster: clusterOf(arbiter, sr)},
		"empty": {
			cluster: topology.Cluster{},
			want: []topology.Finding{
				{Field: controlPlane, Problem: topology.ProblemEmpty, Effective: "HighlyAvailable"},
				{Field: infra, Problem: topology.ProblemEmpty, Effective: "HighlyAvailable"},
			},
			text: []string{
				"status.controlPlaneTopology is empty, acting on HighlyAvailable",
				"status.infrastructureTopology is empty, acting on HighlyAvailable",
			},
		},
		"empty, filled by status.highAvailabilityMode": {
			cluster: declared(filled, "None"),
			want:    []topology.Finding{{Field: controlPlane, Problem: topology.ProblemEmpty, Effective: "SingleReplica"}},
			text:    []string{"status.controlPlaneTopology is empty, acting on SingleReplica"},
		},
		"the control plane and the mode are unknown": {
			cluster: declared(clusterOf(unknown, sr), "Some"),
			want: []topology.Finding{
				{Field: controlPlane, Value: "QuintupleReplica", Problem: topology.ProblemUnknown, Effective: "HighlyAvailable"},
				{Field: mode, Value: "Some", Problem: topology.ProblemUnknown, Effective: "Full"},
			},
			text: []string{
				`status.controlPlaneTopology has the unknown value "QuintupleReplica", acting on HighlyAvailable`,
				`status.highAvailabilityMode has the unknown value "Some", acting on Full`,
			},
		},
		"the infrastructure is unknown": {
			cluster: clusterOf(empty, unknown),
			want: []topology.Finding{
				{Field: controlPlane, Problem: topology.ProblemEmpty, Effective: "HighlyAvailable"},
				{Field: infra, Value: "QuintupleReplica", Problem: topology.ProblemUnknown, Effective: "HighlyAvailable"},
			},
			text: []string{
				"status.controlPlaneTopology is empty, acting on HighlyAvailable",
				`status.infrastructureTopology has the unknown value "QuintupleReplica", acting on HighlyAvailable`,
			},
		},
		"a mode that the infrastructure field does not allow": {
			cluster: clusterOf(dual, dual),
			want:    []topology.Finding{{Field: infra, Value: "DualReplica", Problem: topology.ProblemNotApplicable, Effective: "DualReplica"}},
			text:    []string{`status.infrastructureTopology has the value "DualReplica", which the API does not allow there, acting on DualReplica`},
		},
		"None contradicted": {
			cluster: declared(clusterOf(ha, ha), "None"),
			want:    []topology.Finding{{Field: mode, Value: "None", Problem: topology.ProblemContradicted, Effective: "Full"}},
			text:    []string{`status.highAvailabilityMode is "None" but the topologies mean Full, acting on Full`},
		},
		"Full contradicted": {
			cluster: declared(clusterOf(sr, sr), "Full"),
			want:    []topology.Finding{{Field: mode, Value: "Full", Problem: topology.ProblemContradicted, Effective: "None"}},
			text:    []string{`status.highAvailabilityMode is "Full" but the topologies mean None, acting on None`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.cluster.Findings()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			var text []string
			unknownValues := ""
			for _, finding := range got {
				text = append(text, finding.String())
				if finding.Problem == topology.ProblemUnknown {
					unknownValues += "; " + finding.String()
				}
			}
			if diff := cmp.Diff(test.text, text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got := test.cluster.UnknownValues(); got != unknownValues {
				t.Errorf("unknown values: %q, want %q", got, unknownValues)
			}
		})
	}
}
