// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"github.com/solonode/sno/conformance/report"
)

// SNO-TOP-008 to 010: every operand recovers from a disruption.

func operandsRollOut() Check {
	return recovers("SNO-TOP-008", "A rollout of every operand ends", Requirement{"R-OPS-1", "operators do what they normally do, disruptive changes included"},
		RollOutAll, func(r Records) *Disruption { return r.Rollout },
		onCluster("the new pod needs a node without the old one, which must stay"))
}

func operandsAreEvicted() Check {
	return recovers("SNO-TOP-009", "Every pod of every operand can be evicted and is replaced",
		Requirement{"R-SNO-3", "no budget forbids every eviction, and evicted pods are replaced"},
		EvictAll, func(r Records) *Disruption { return r.Eviction },
		onCluster("a budget allows no eviction"), onCluster("a quota forbids the replacement of an evicted pod"))
}

func operandsOutlastRestarts() Check {
	return recovers("SNO-TOP-010", "Operands come back after a restart of every node",
		Requirement{"R-SUITE-7", "a cluster recovers from a restart of its control-plane node"},
		RestartNodes, func(r Records) *Disruption { return r.NodeRestart },
		onCluster("a node is unschedulable after its restart"))
}

func recovers(id, title string, requirement Requirement, act Act, recorded func(Records) *Disruption, cluster ...Control) Check {
	return Check{
		ID: id, Title: title, Module: Topology, Requirement: requirement, Level: Core, Tier: Disruptive, Act: act,
		NotApplicable: func(s *State) string { return unless(len(s.Operands()) > 0, "no operand has pods") },
		Run:           func(in *Input) ([]report.Evidence, error) { return recorded(in.Records).evidence(), nil },
		Figures:       func(r Records) []report.Figure { return recorded(r).figures() },
		Controls: append([]Control{
			{Name: "one operand does not recover", Change: func(in *Input) bool { return recorded(in.Records).failFirst() }},
			{Name: "a longer downtime", MustPass: true, Change: func(in *Input) bool { recorded(in.Records).Operands[0].Downtime++; return true }},
		}, cluster...),
	}
}

func (d *Disruption) evidence() []report.Evidence {
	var evidence []report.Evidence
	for _, o := range d.Operands {
		got := "available"
		if o.Failure != "" {
			got = o.Failure
		}
		evidence = append(evidence, found(o.Name, "status.availableReplicas, afterwards", "available", got, o.Failure == ""))
	}
	return evidence
}

func (d *Disruption) figures() []report.Figure {
	var figures []report.Figure
	for _, o := range d.Operands {
		figures = append(figures, report.Figure{Name: "no pod available: " + o.Name, Value: o.Downtime, Unit: "s"})
	}
	return figures
}

func (d *Disruption) failFirst() bool {
	if len(d.Operands) == 0 {
		return false
	}
	d.Operands[0].Failure = "0 of 1 pods are available"
	return true
}
