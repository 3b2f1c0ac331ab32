// SPDX-License-Identifier: Apache-2.0

package approver

import (
	"crypto/x509"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/approver/inventory"
	"github.com/solonode/sno/approver/requests"
	"github.com/solonode/sno/topology"
)

const (
	reasonAsExpected     = "AsExpected"
	reasonDisabled       = "DisabledByConfiguration"
	reasonNoSecondSource = "NoSecondSource"
	reasonUnknown        = "TopologyOrMachinesUnknown"
)

// rules are the decisions that depend on the topology.
type rules struct {
	// clientFlow decides whether client certificates may be approved at all.
	clientFlow func(*sources) flow
	// decide decides on one request, without regard to the flow.
	decide func(*certificatesv1.CertificateSigningRequest, *sources) requests.Verdict
	// reports means that the conditions of the vendored module are published.
	reports bool
}

// flow is whether client certificates may be approved. An unknown one approves nothing.
type flow struct {
	enabled, unknown bool
	reason, message  string
}

// sources are what one pass has read. What could not be read is nil or unknown, and proves nothing.
type sources struct {
	now      time.Time
	cluster  *topology.Cluster
	disabled bool // by the configuration
	nodes    sets.Set[string]
	machines []inventory.Machine
	// presence is that of Machines, also of those that could not be parsed.
	presence  approver.MachinePresence
	inventory *inventory.Inventory
	// approvals counts the approved client requests of each node.
	approvals map[string]int
	// authority signs the certificates of kubelets.
	authority *x509.CertPool
	// kubelets are the chains that were presented in this pass, by node; nil for one that did not answer.
	kubelets map[string][]*x509.Certificate
	egress   map[string]requests.EgressIPs
}

// kubelet returns what a node's kubelet presented, or nil if it was not called or did not answer.
func (s *sources) kubelet(node string) *requests.KubeletCertificate {
	if len(s.kubelets[node]) == 0 {
		return nil
	}
	return &requests.KubeletCertificate{Chain: s.kubelets[node], Roots: s.authority}
}

// verdict applies the flow to the decision on a request.
func (r rules) verdict(csr *certificatesv1.CertificateSigningRequest, s *sources, clients flow) requests.Verdict {
	verdict := r.decide(csr, s)
	if verdict.Flow == requests.ClientFlow && !clients.enabled {
		verdict.Approve, verdict.Reason, verdict.Message = false, clients.reason, clients.message
	}
	return verdict
}
