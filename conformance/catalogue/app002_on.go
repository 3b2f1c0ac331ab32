// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/conformance/report"
)

func approverOn() Check {
	return Check{
		ID: "SNO-APP-002", Title: "The stock approver is on where the control plane is not a single node", Module: approver, Level: Core, Tier: Static,
		Requirement: Requirement{"R-SNO-12", "the approver is turned off only where there is no second source"},
		Topologies:  severalTopologies(), NotApplicable: firstOf(approverAbsent, exceptSingle),
		Run: func(in *Input) ([]report.Evidence, error) {
			d := in.State.Deployment(stockApprover.Namespace, stockApprover.Name)
			off, err := clientFlowOff(in.State)
			evidence := []report.Evidence{
				found(approverConfig, "nodeClientCert.disabled", "false or not set", off, !off),
				found(NameOf(d), "spec.replicas", "at least 1", Replicas(d), Replicas(d) >= 1),
			}
			if reported := reportedFlow(in.State); reported != "" {
				held := reported == configv1.ConditionTrue
				evidence = append(evidence, found(approverOperator, "status.conditions["+approverFlow+"]", string(configv1.ConditionTrue), reported, held))
			}
			return evidence, err
		},
		Controls: []Control{
			{Name: "the configuration turns it off", Change: configureApprover("nodeClientCert:\n  disabled: true\n")},
			{Name: "no replicas", Change: onDeployment(stockApprover, setReplicas(0))},
			{Name: "the operator reports that it is off", Change: reportFlow(configv1.ConditionFalse)},
			{Name: "the configuration turns it on", MustPass: true, Change: configureApprover("nodeClientCert:\n  disabled: false\n")},
		},
	}
}
