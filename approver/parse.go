package approver

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Bounds of what is looked at. A kubelet's request has about 500 bytes.
const (
	// MaxRequestBytes is how long the PEM text may be.
	MaxRequestBytes = 16 << 10
	// maxRSABits keeps a signature cheap to verify: the cost grows with the square of the key.
	maxRSABits = 8192
)

// Faults of a request about which nothing is decided, in the order in which they are looked for. Unreadable has their reasons.
var (
	ErrTooLarge     = errors.New("the request is too large")
	ErrNotPEM       = errors.New("the request is not PEM")
	ErrPEMType      = errors.New("the PEM block is no CERTIFICATE REQUEST")
	ErrPEMSurplus   = errors.New("there is something beside one plain PEM block")
	ErrMalformed    = errors.New("the certificate request cannot be read")
	ErrKeyTooLarge  = errors.New("the public key is too large")
	ErrBadSignature = errors.New("the request is not signed by its own key")
)

// Flow is what a request is for.
type Flow string

// The flows that are decided about, those of the stock approver (U-APP-3). Every other signer is somebody else's.
const (
	// OtherFlow is the zero value.
	OtherFlow Flow = ""
	// ClientFlow is a node that joins: it wants the certificate by which the API server knows it.
	ClientFlow Flow = "Client"
	// ServingFlow is a node that serves: it wants the certificate by which others know its kubelet.
	ServingFlow Flow = "Serving"
)

// nodePrefix begins the user name and common name of a node, nodesGroup is its only organization.
const (
	nodePrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// Request is a certificate signing request that was parsed: what the API server says of it, and what is signed inside.
type Request struct {
	// Name is that of the object, Created when the API server made it.
	Name    string
	Created time.Time
	// Signer is spec.signerName; Username, Groups and Usages are those of the spec. The API server wrote the first two.
	Signer   string
	Username string
	Groups   []string
	Usages   []certificatesv1.KeyUsage
	// Decided tells that somebody approved or denied it, that signing failed, or that the certificate is there.
	Decided bool
	// X509 is what the requestor signed.
	X509 *x509.CertificateRequest

	// parsed is true for what Parse returned: nothing else has had its signature verified.
	parsed bool
}

// Parse reads a request strictly: exactly one PEM block without headers and with nothing around it, of bounded size, a
// certificate request with a valid signature by its own key. Every error is one of the Err variables, wrapped with the cause.
func Parse(csr *certificatesv1.CertificateSigningRequest) (Request, error) {
	inner, err := decode(csr.Spec.Request)
	if err != nil {
		return Request{}, err
	}
	return assemble(csr, inner), nil
}

// decode reads what the requestor signed.
func decode(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > MaxRequestBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(text), MaxRequestBytes)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, ErrNotPEM
	case block.Type != "CERTIFICATE REQUEST":
		return nil, fmt.Errorf("%w: it is %q", ErrPEMType, block.Type)
	case len(block.Headers) > 0 || len(rest) > 0 || !bytes.Equal(text, pem.EncodeToMemory(block)):
		// A parser that takes another block than this one would see another request.
		return nil, ErrPEMSurplus
	}
	inner, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if key, ok := inner.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, fmt.Errorf("%w: %d bits, at most %d", ErrKeyTooLarge, key.N.BitLen(), maxRSABits)
	}
	if err := inner.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadSignature, err)
	}
	return inner, nil
}

// assemble puts what the API server says around it.
func assemble(csr *certificatesv1.CertificateSigningRequest, inner *x509.CertificateRequest) Request {
	return Request{
		Name: csr.Name, Created: csr.CreationTimestamp.Time, Signer: csr.Spec.SignerName,
		Username: csr.Spec.Username, Groups: csr.Spec.Groups, Usages: csr.Spec.Usages,
		Decided: len(csr.Status.Conditions) > 0 || len(csr.Status.Certificate) > 0,
		X509:    inner,
		parsed:  true,
	}
}

// Flow tells what the request is for, by its signer.
func (r Request) Flow() Flow { return flowOf(r.Signer) }

func flowOf(signer string) Flow {
	switch signer {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return ClientFlow
	case certificatesv1.KubeletServingSignerName:
		return ServingFlow
	}
	return OtherFlow
}

// Node is the name of the node that the request is for, by its common name; empty when that is not a node's.
func (r Request) Node() string {
	if r.X509 == nil {
		return ""
	}
	name, ok := strings.CutPrefix(r.X509.Subject.CommonName, nodePrefix)
	if !ok {
		return ""
	}
	return name
}
