package stable

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
)

var subject = pkix.Name{CommonName: "system:node:worker", Organization: []string{"system:nodes"}}

func key(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// requestPEM is what a kubelet asks for.
func requestPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key(t))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// certificatePEM is some certificate: the API server does not compare it with the request.
func certificatePEM(t *testing.T) []byte {
	t.Helper()
	template := &x509.Certificate{Subject: subject, SerialNumber: big.NewInt(1)}
	signer := key(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &signer.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
