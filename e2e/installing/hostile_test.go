// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/yaml"
)

// The requests are valid, and each names its node.
func TestHostileRequests(t *testing.T) {
	text, err := hostileRequests()
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(text, "---\n")
	if len(documents) != len(hostile) {
		t.Fatalf("%d requests, want %d", len(documents), len(hostile))
	}
	for i, want := range hostile {
		var csr certificatesv1.CertificateSigningRequest
		if err := yaml.UnmarshalStrict([]byte(documents[i]), &csr); err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(csr.Spec.Request)
		if block == nil {
			t.Fatalf("%s: no PEM", want.name)
		}
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || request.CheckSignature() != nil {
			t.Fatalf("%s: %v", want.name, err)
		}
		if csr.Name != want.name || csr.Spec.SignerName != want.signer || request.Subject.CommonName != "system:node:"+want.node {
			t.Errorf("%s: %s for %s", csr.Name, csr.Spec.SignerName, request.Subject)
		}
		if strings.Contains(want.usages, "server auth") != slices.Contains(csr.Spec.Usages, certificatesv1.UsageServerAuth) {
			t.Errorf("%s: usages %v", csr.Name, csr.Spec.Usages)
		}
	}
}
