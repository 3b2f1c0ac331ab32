package approver

import (
	"crypto/x509"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// DecideBy decides with other checks than those of the flow, so that a test can leave one out.
var DecideBy = decide

// Read and Assemble are the halves of Parse, so that a test need not verify the same signature again and again.
var Read = decode

// Assemble is the other half.
func Assemble(csr *certificatesv1.CertificateSigningRequest, inner *x509.CertificateRequest) Request {
	return assemble(csr, inner)
}
