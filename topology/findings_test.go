package topology_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/topology"
)

func TestFindings(t *testing.T) {
	const (
		controlPlane = "status.controlPlaneTopology"
		infra        = "status.infrastructureTopology"
		mode         = "status.highAvailabilityMode"
	)
	for _, test := range []struct {
		name                string
		controlPlane, infra configv1.TopologyMode
		declared            topology.HighAvailabilityMode
		want                []topology.Finding
		text                []string
	}{
		{name: "clear", controlPlane: sr, infra: ha},
		{name: "clear with a mode that agrees", controlPlane: sr, infra: ha, declared: "None"},
		{name: "external is clear", controlPlane: external, infra: ha, declared: "Full"},
		{
			name: "empty",
			want: []topology.Finding{
				{Field: controlPlane, Problem: topology.ProblemEmpty, ActedOn: "HighlyAvailable"},
				{Field: infra, Problem: topology.ProblemEmpty, ActedOn: "HighlyAvailable"},
			},
			text: []string{
				"status.controlPlaneTopology is empty, acting on HighlyAvailable",
				"status.infrastructureTopology is empty, acting on HighlyAvailable",
			},
		},
		{
			name: "unknown", controlPlane: unknown, infra: sr, declared: "Some",
			want: []topology.Finding{
				{Field: controlPlane, Value: "QuintupleReplica", Problem: topology.ProblemUnknown, ActedOn: "HighlyAvailable"},
				{Field: mode, Value: "Some", Problem: topology.ProblemUnknown, ActedOn: "Full"},
			},
			text: []string{
				`status.controlPlaneTopology has the unknown value "QuintupleReplica", acting on HighlyAvailable`,
				`status.highAvailabilityMode has the unknown value "Some", acting on Full`,
			},
		},
		{
			name: "the infrastructure alone is unknown", controlPlane: sr, infra: unknown,
			want: []topology.Finding{{Field: infra, Value: "QuintupleReplica", Problem: topology.ProblemUnknown, ActedOn: "HighlyAvailable"}},
			text: []string{`status.infrastructureTopology has the unknown value "QuintupleReplica", acting on HighlyAvailable`},
		},
		{
			name: "a mode that the infrastructure field does not allow", controlPlane: dual, infra: dual,
			want: []topology.Finding{{Field: infra, Value: "DualReplica", Problem: topology.ProblemNotApplicable, ActedOn: "DualReplica"}},
			text: []string{`status.infrastructureTopology has the value "DualReplica", which the API does not allow there, acting on DualReplica`},
		},
		{
			name: "None contradicted", controlPlane: ha, infra: ha, declared: "None",
			want: []topology.Finding{{Field: mode, Value: "None", Problem: topology.ProblemContradicted, ActedOn: "Full"}},
			text: []string{`status.highAvailabilityMode is "None" but the topologies say Full, acting on Full`},
		},
		{
			name: "Full contradicted", controlPlane: sr, infra: sr, declared: "Full",
			want: []topology.Finding{{Field: mode, Value: "Full", Problem: topology.ProblemContradicted, ActedOn: "None"}},
			text: []string{`status.highAvailabilityMode is "Full" but the topologies say None, acting on None`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := topology.Cluster{
				ControlPlane:   topology.ReadingOf(test.controlPlane),
				Infrastructure: topology.ReadingOf(test.infra),
				Declared:       test.declared,
			}
			got := cluster.Findings()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			var text []string
			for _, finding := range got {
				text = append(text, finding.String())
			}
			if diff := cmp.Diff(test.text, text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

// Unknown values end a message, whichever of the fields has them; everything else that is found does not.
func TestUnknownValues(t *testing.T) {
	const (
		controlPlane = `; status.controlPlaneTopology has the unknown value "QuintupleReplica", acting on HighlyAvailable`
		infra        = `; status.infrastructureTopology has the unknown value "QuintupleReplica", acting on HighlyAvailable`
	)
	modes := []configv1.TopologyMode{ha, arbiter, dual, sr, external, empty, unknown}
	for _, c := range modes {
		for _, i := range modes {
			want := ""
			if c == unknown {
				want += controlPlane
			}
			if i == unknown {
				want += infra
			}
			cluster := topology.Cluster{ControlPlane: topology.ReadingOf(c), Infrastructure: topology.ReadingOf(i)}
			if got := cluster.UnknownValues(); got != want {
				t.Errorf("%q, %q: %q, want %q", c, i, got, want)
			}
		}
	}
}

// An empty field that status.highAvailabilityMode filled says what it was filled with.
func TestFindingsOfAFilledField(t *testing.T) {
	cluster := topology.Cluster{
		ControlPlane:   topology.Reading{Mode: sr},
		Infrastructure: topology.Reading{Mode: ha, Reported: ha},
		Declared:       topology.HighAvailabilityNone,
	}
	want := []topology.Finding{{Field: topology.FieldControlPlaneTopology, Problem: topology.ProblemEmpty, ActedOn: "SingleReplica"}}
	if diff := cmp.Diff(want, cluster.Findings()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestHighAvailability shows R-TOP-3.
func TestHighAvailability(t *testing.T) {
	const none, full = topology.HighAvailabilityNone, topology.HighAvailabilityFull
	for _, test := range []struct {
		controlPlane, infra configv1.TopologyMode
		want                topology.HighAvailabilityMode
	}{
		{sr, sr, none},
		{sr, ha, none}, // workers do not matter
		{sr, empty, none},
		{ha, sr, full},
		{ha, ha, full},
		{arbiter, ha, full},
		{arbiter, sr, full},
		{dual, ha, full},
		{dual, sr, full},
		{external, ha, full},
		{external, sr, none},
		{external, unknown, full},
		{empty, empty, full},
		{empty, sr, full},
		{unknown, unknown, full},
		{unknown, sr, full},
	} {
		cluster := topology.Cluster{ControlPlane: topology.ReadingOf(test.controlPlane), Infrastructure: topology.ReadingOf(test.infra)}
		if got := cluster.HighAvailability(); got != test.want {
			t.Errorf("control plane %q, infrastructure %q: %s, want %s", test.controlPlane, test.infra, got, test.want)
		}
	}
	if got := (topology.Cluster{}).HighAvailability(); got != full {
		t.Errorf("zero Cluster: %s, want %s", got, full)
	}
}
