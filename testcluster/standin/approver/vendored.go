// SPDX-License-Identifier: Apache-2.0

package approver

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/requests"
)

func vendoredRules() rules {
	return rules{clientFlow: vendoredFlow, decide: vendoredDecide, reports: true}
}

func vendoredFlow(s *sources) flow {
	if s.disabled {
		return disabledFlow()
	}
	if s.cluster == nil {
		return flow{unknown: true, reason: reasonUnknown, message: "The Infrastructure object could not be read; no client certificate is approved until it can be"}
	}
	switch enabled, err := approver.Enabled(approver.Host{Cluster: *s.cluster, Machines: s.presence}); {
	case err != nil:
		return flow{unknown: true, reason: reasonUnknown, message: "No client certificate is approved: " + err.Error()}
	case !enabled:
		return flow{reason: reasonNoSecondSource, message: "The control plane is a single node without Machines, so nothing confirms " +
			"that a node belongs to the cluster; a person decides on requests for client certificates" + s.cluster.UnknownValues()}
	}
	return flow{enabled: true, reason: reasonAsExpected, message: "Requests for client certificates are approved for nodes of Machines" + s.cluster.UnknownValues()}
}

func vendoredDecide(csr *certificatesv1.CertificateSigningRequest, s *sources) requests.Verdict {
	inputs := requests.Inputs{Request: csr, Nodes: s.nodes, Inventory: s.inventory, Approvals: s.approvals, Now: s.now}
	verdict := requests.Decide(inputs)
	if current := s.kubelet(verdict.Node); verdict.NeedsKubeletCertificate() && current != nil {
		inputs.KubeletCertificate, inputs.EgressIPs = current, s.egress[verdict.Node]
		verdict = requests.Decide(inputs)
	}
	return verdict
}
