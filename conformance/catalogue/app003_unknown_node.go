// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/solonode/sno/conformance/report"

// UnknownNode is in no inventory and has no Machine.
const UnknownNode = "sno-conformance-unknown"

func unknownNodePending() Check {
	return Check{
		ID: "SNO-APP-003", Title: "A certificate request of an unknown node stays pending", Module: approver, Level: Core, Tier: Scheduled,
		Requirement: Requirement{"R-APP-2", "an approval needs two sources of truth, and a single node has no second one"},
		Needs:       []string{"permission to impersonate the node bootstrapper"}, Act: RequestCertificate,
		Run: func(in *Input) ([]report.Evidence, error) {
			got := "pending"
			switch {
			case in.CSR.Approved:
				got = "approved"
			case in.CSR.Denied:
				got = "denied"
			}
			return []report.Evidence{found("CertificateSigningRequest of "+UnknownNode, "status.conditions", "not approved", got, !in.CSR.Approved)}, nil
		},
		Controls: []Control{
			{Name: "the request is approved", Change: func(in *Input) bool { in.CSR.Approved = true; return true }},
			{Name: "the request is denied", MustPass: true, Change: func(in *Input) bool { in.CSR.Denied = true; return true }},
			onCluster("a client approves every request of a node"),
		},
	}
}
