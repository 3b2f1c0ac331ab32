// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/report"
)

// approverOff accepts an operator that decides by the topology itself, and reports that. It is extended, as defence in
// depth: without a Machine the stock approver approves no client certificate anyway.
func approverOff() Check {
	return Check{
		ID: "SNO-APP-001", Title: "The stock approver's flow for client certificates is off on a single control-plane node", Module: approver, Level: Extended, Tier: Static,
		Requirement: Requirement{"R-APP-1", "on a single control-plane node nothing is approved automatically from within the cluster"},
		Topologies:  []string{"SingleReplica"},
		NotApplicable: firstOf(approverAbsent, onlySingle, func(s *State) string {
			return unless(s.Machines == 0, "Machines exist, which are the second source")
		}),
		Run: func(in *Input) ([]report.Evidence, error) {
			if d := in.State.Deployment(stockApprover.Namespace, stockApprover.Name); Replicas(d) == 0 {
				return []report.Evidence{found(NameOf(d), "spec.replicas", "0", 0, true)}, nil
			}
			off, err := clientFlowOff(in.State)
			if reported := reportedFlow(in.State); reported != "" && !off && err == nil {
				held := reported == configv1.ConditionFalse
				return []report.Evidence{found(approverOperator, "status.conditions["+approverFlow+"]", string(configv1.ConditionFalse), reported, held)}, nil
			}
			return []report.Evidence{found(approverConfig, "nodeClientCert.disabled", "true", off, off)}, err
		},
		Controls: []Control{
			{Name: "the configuration turns it on", Change: configureApprover("nodeClientCert:\n  disabled: false\n")},
			{Name: "no configuration", Change: onState(func(s *State) { s.Approver, s.ApproverOperator = nil, nil })},
			{Name: "the operator reports that it is on", Change: reportFlow(configv1.ConditionTrue)},
			{Name: "the operator does not know whether it is on", Change: reportFlow(configv1.ConditionUnknown)},
			{Name: "the operator reports that it is off", MustPass: true, Change: reportFlow(configv1.ConditionFalse)},
			{Name: "the configuration has more fields", MustPass: true, Change: configureApprover("nodeServingCert:\n  disabled: false\nnodeClientCert: {disabled: true} # why\n")},
		},
	}
}
