// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solonode/sno/e2e/joining"
)

func TestDiffers(t *testing.T) {
	want := map[string]string{"own": "approved ProvenByInventory", "hostile": "pending NotInInventory"}
	own, hostile := joining.RequestResult{Outcome: "approved", Reason: "ProvenByInventory"}, joining.RequestResult{Outcome: "pending", Reason: "NotInInventory"}
	for name, test := range map[string]struct {
		results map[string]joining.RequestResult
		err     error
	}{
		"all as wanted":        {map[string]joining.RequestResult{"own": own, "hostile": hostile, "another's": hostile}, nil},
		"hostile approved":     {map[string]joining.RequestResult{"own": own, "hostile": own}, errOutcome},
		"own left pending":     {map[string]joining.RequestResult{"own": hostile, "hostile": hostile}, errOutcome},
		"for another reason":   {map[string]joining.RequestResult{"own": own, "hostile": {Outcome: "pending", Reason: "NodeExists"}}, errOutcome},
		"hostile not reported": {map[string]joining.RequestResult{"own": own}, errOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			if err := differs(want, test.results); !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
		})
	}
}

func TestNewRequests(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request := func(name, signer, node string) certificatesv1.CertificateSigningRequest {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: joining.Subject(node)}, key)
		if err != nil {
			t.Fatal(err)
		}
		return certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		}}
	}
	broken := request("broken", clientSigner, "worker")
	broken.Spec.Request = []byte("none")
	decided := request("decided", clientSigner, "worker")
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	all := []certificatesv1.CertificateSigningRequest{
		request("known", clientSigner, "worker"), request("own", clientSigner, "worker"), request("serving", servingSigner, "worker"),
		request("other", clientSigner, "worker2"), broken, decided,
	}
	// A request that was approved too early must be reported, so decided ones count.
	if got := newRequests(all, clientSigner, "worker", []string{"known"}); !slices.Equal(got, []string{"own", "decided"}) {
		t.Errorf("%v", got)
	}
}
