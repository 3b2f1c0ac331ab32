package approver

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// ApprovedFor is the node for which a request of the cluster is an approved client request of a node that joins, whoever approved it;
// empty for every other request. Counted by node, they are Inputs.Approvals. The cluster deletes them an hour after they were
// approved; from then on it is the Node itself that keeps a second one from joining under its name.
func ApprovedFor(csr *certificatesv1.CertificateSigningRequest) string {
	approved := slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
	// A node that renews its client certificate is there already.
	if !approved || flowOf(csr.Spec.SignerName) != ClientFlow || strings.HasPrefix(csr.Spec.Username, nodePrefix) {
		return ""
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return ""
	}
	inner, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return Request{X509: inner}.Node()
}
