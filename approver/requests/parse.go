// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	maxBytes   = 16 << 10 // a kubelet's request has about 500
	maxRSABits = 8192     // the cost of a verification grows with the square

	nodePrefix = "system:node:" // of the user name and the common name of a node
	nodesGroup = "system:nodes" // the only organization of a node
)

// Flow is the kind of a request, by its signer, as in the stock approver (U-APP-3).
type Flow string

// Values of Flow.
const (
	OtherFlow   Flow = "" // every other signer
	ClientFlow  Flow = "Client"
	ServingFlow Flow = "Serving"
)

var flows = map[string]Flow{
	certificatesv1.KubeAPIServerClientKubeletSignerName: ClientFlow,
	certificatesv1.KubeletServingSignerName:             ServingFlow,
}

// Signers are the signers of both flows.
var Signers = slices.Sorted(maps.Keys(flows))

func flowOf(csr *certificatesv1.CertificateSigningRequest) Flow { return flows[csr.Spec.SignerName] }

func nodeOf(content *x509.CertificateRequest) string {
	name, ok := strings.CutPrefix(content.Subject.CommonName, nodePrefix)
	if !ok {
		return ""
	}
	return name
}

// parse reads exactly one plain PEM block of limited size, with a certificate request that is signed by its own key.
func parse(text []byte) (*x509.CertificateRequest, *Finding) {
	if len(text) > maxBytes {
		return nil, refuse(ReasonTooLarge, "The request has %d bytes, at most %d are allowed", len(text), maxBytes)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, refuse(ReasonNotPEM, "The request is not PEM")
	case block.Type != "CERTIFICATE REQUEST":
		return nil, refuse(ReasonPEMType, "The type of the PEM block is %q, not CERTIFICATE REQUEST", block.Type)
	case len(block.Headers) > 0 || len(rest) > 0 || !bytes.Equal(text, pem.EncodeToMemory(block)):
		// Another parser could read another block.
		return nil, refuse(ReasonPEMSurplus, "The request is more than one plain PEM block")
	}
	content, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, refuse(ReasonMalformed, "The certificate request cannot be parsed: %v", err)
	}
	if key, ok := content.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, refuse(ReasonKeyTooLarge, "The public key has %d bits, at most %d are allowed", key.N.BitLen(), maxRSABits)
	}
	if err := content.CheckSignature(); err != nil {
		return nil, refuse(ReasonBadSignature, "The request is not signed by its own key: %v", err)
	}
	return content, nil
}

// Decided reports whether the request is approved, denied, failed or signed.
func Decided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0
}

// ApprovedFor returns the node that joins by an approved client request, or an empty string. The cluster keeps such
// requests for an hour.
func ApprovedFor(csr *certificatesv1.CertificateSigningRequest) string {
	approved := slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
	// A node that renews its client certificate has joined already.
	if !approved || flowOf(csr) != ClientFlow || strings.HasPrefix(csr.Spec.Username, nodePrefix) {
		return ""
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return ""
	}
	content, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return nodeOf(content)
}
