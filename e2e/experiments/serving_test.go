// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/e2e/joining"
)

// A kubelet renews at a random time after seven to nine tenths of the validity.
func TestAge(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "kubernetes"}, key)
	if err != nil {
		t.Fatal(err)
	}
	current := &x509.Certificate{Subject: joining.Subject("worker"), DNSNames: []string{"worker"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}}
	aged, file, err := age(current, authority, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	for _, name := range []string{"worker", "192.0.2.7"} {
		if _, err := aged.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("it does not serve as %s: %v", name, err)
		}
	}
	if aged.Subject.String() != current.Subject.String() {
		t.Errorf("its subject is %s", aged.Subject)
	}
	whole := aged.NotAfter.Sub(aged.NotBefore)
	if latest := aged.NotBefore.Add(whole * 9 / 10); latest.After(time.Now()) {
		t.Errorf("a kubelet may renew it only in %s", time.Until(latest))
	}
	if pair, err := tls.X509KeyPair(file, file); err != nil || !pair.Leaf.Equal(aged) {
		t.Errorf("the kubelet's file: %v", err)
	}
}
