// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/store"
)

// kube-apiserver trusts the CA of kube-controller-manager and the sidecars' certificate.
func TestCertificates(t *testing.T) {
	s := fixture.Settings(inputs.OpenShift, "192.168.2.1")
	st := fixture.Store(t, fixture.Objects(s)...)
	if _, err := fixture.Run(st, Certificates(s)); err != nil {
		t.Fatal(err)
	}
	files := func(o store.Object) map[string][]byte {
		t.Helper()
		secret, err := fixture.Session(st).Kube().CoreV1().Secrets(o.Namespace).Get(t.Context(), o.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return secret.Data
	}
	roots, err := cert.NewPoolFromBytes([]byte(fixture.ConfigMapData(t, st, sharedControllerCA.Namespace, sharedControllerCA.Name)["ca-bundle.crt"]))
	if err != nil {
		t.Fatal(err)
	}
	signing, err := cert.ParseCertsPEM(files(activeSigner)["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	if len(signing) != 1 || !signing[0].IsCA {
		t.Errorf("the controller takes one certificate, of a CA: it has %d", len(signing))
	}
	if _, err := signing[0].Verify(x509.VerifyOptions{Roots: roots}); err != nil {
		t.Errorf("the CA of requests is not trusted: %v", err)
	}
	if lasts := signing[0].NotAfter.Sub(signing[0].NotBefore); lasts < s.Validity-time.Hour {
		t.Errorf("the CA of requests lasts %s, want %s", lasts, s.Validity)
	}
	recovery, err := cert.ParseCertsPEM(files(RecoveryCertificate(s, namespace).Target)["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recovery[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the sidecars are not trusted: %v", err)
	}
	if got := recovery[0].Subject.CommonName; got != "system:serviceaccount:openshift-kube-controller-manager:localhost-recovery-client" {
		t.Errorf("the sidecars are %s", got)
	}
	private, _ := pem.Decode(files(key)[privateKeyFile])
	parsed, err := x509.ParsePKCS1PrivateKey(private.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pem.Decode([]byte(fixture.ConfigMapData(t, st, publicKeys.Namespace, publicKeys.Name)["service-account-001.pub"]))
	want, err := x509.MarshalPKIXPublicKey(&parsed.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(public.Bytes, want) {
		t.Error("the published key is not that of the private key")
	}
}

// Profile kubernetes has no sidecars, so it has no certificate with administrator rights for them.
func TestRecoveryOnlyOpenShift(t *testing.T) {
	for profile, want := range map[inputs.Profile]bool{inputs.OpenShift: true, inputs.Kubernetes: false} {
		s := fixture.Settings(profile, "192.168.2.1")
		target := RecoveryCertificate(s, namespace).Target
		got := slices.ContainsFunc(rotation(s).Writes, func(p store.Pattern) bool { return p.Name == target.Name })
		if got != want {
			t.Errorf("%s: a certificate for sidecars: %t, want %t", profile, got, want)
		}
	}
}
