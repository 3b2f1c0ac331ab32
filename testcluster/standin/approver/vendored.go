// SPDX-License-Identifier: Apache-2.0

package approver

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/requests"
)

const (
	reasonAsExpected     = "AsExpected"
	reasonDisabled       = "DisabledByConfiguration"
	reasonNoSecondSource = "NoSecondSource"
	reasonUnknown        = "TopologyOrMachinesUnknown"
)

// flow is whether client certificates may be approved at all. An unknown one approves nothing.
type flow struct {
	enabled, unknown bool
	reason, message  string
}

func (r *reconciler) clientFlow(s *sources) flow {
	switch {
	case r.disabled:
		return flow{reason: reasonDisabled, message: "The configuration disables the flow for client certificates"}
	case r.stock:
		return flow{enabled: true, reason: reasonAsExpected}
	case s.cluster == nil:
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

// vendoredDecide asks no kubelet for its certificate: simulated ones have none, so only Machines prove a renewal.
func vendoredDecide(csr *certificatesv1.CertificateSigningRequest, s *sources) requests.Verdict {
	return requests.Decide(requests.Inputs{Request: csr, Nodes: s.nodes, Inventory: s.inventory, Approvals: s.approvals, Now: s.now})
}
