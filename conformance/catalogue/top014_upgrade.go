// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/report"
)

func outlastsUpgrade() Check {
	return Check{
		ID: "SNO-TOP-014", Title: "Operands come back after an upgrade", Module: Topology, Requirement: Requirement{"R-SUITE-8", "a cluster recovers from an upgrade"},
		Level: Core, Tier: Disruptive, Needs: []string{"a provider that can upgrade the cluster"}, Act: UpgradeCluster,
		NotApplicable: func(s *State) string { return unless(s.ClusterVersion != nil, "ClusterVersion version does not exist") },
		Run: func(in *Input) ([]report.Evidence, error) {
			u := in.Upgrade
			history := found("ClusterVersion version", "status.history, newest entry", string(configv1.CompletedUpdate), u.To+" is "+string(u.State), u.State == configv1.CompletedUpdate)
			return append([]report.Evidence{history}, u.evidence()...), nil
		},
		Figures: func(r Records) []report.Figure {
			return append([]report.Figure{{Name: "upgrade completed after", Value: r.Upgrade.Seconds, Unit: "s"}}, r.Upgrade.figures()...)
		},
		Controls: []Control{
			{Name: "the upgrade stays partial", Change: func(in *Input) bool { in.Upgrade.State = configv1.PartialUpdate; return true }},
			{Name: "one operand does not recover", Change: func(in *Input) bool { return in.Upgrade.failFirst() }},
			{Name: "a longer upgrade", MustPass: true, Change: func(in *Input) bool { in.Upgrade.Seconds++; return true }},
			onCluster("the upgrade does not complete"),
		},
	}
}
