// SPDX-License-Identifier: Apache-2.0

package kubecontrollermanager

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

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
	roots := fixture.Pool(t, []byte(fixture.ConfigMapData(t, st, sharedControllerCA.Namespace, sharedControllerCA.Name)["ca-bundle.crt"]))
	signing, err := cert.ParseCertsPEM(fixture.SecretData(t, st, activeSigner)["tls.crt"])
	if err != nil {
		t.Fatal(err)
	}
	if len(signing) != 1 || !signing[0].IsCA {
		t.Errorf("the controller takes one certificate, of a CA: it has %d", len(signing))
	}
	fixture.Verify(t, roots, signing[0], "", x509.ExtKeyUsageAny)
	if lasts := signing[0].NotAfter.Sub(signing[0].NotBefore); lasts < s.Validity-time.Hour {
		t.Errorf("the CA of requests lasts %s, want %s", lasts, s.Validity)
	}
	recovery := fixture.Leaf(t, fixture.SecretData(t, st, RecoveryCertificate(s, namespace).Target)["tls.crt"])
	fixture.Verify(t, roots, recovery, "", x509.ExtKeyUsageClientAuth)
	if got := recovery.Subject.CommonName; got != "system:serviceaccount:openshift-kube-controller-manager:localhost-recovery-client" {
		t.Errorf("the sidecars are %s", got)
	}
	private, err := keyutil.ParsePrivateKeyPEM(fixture.SecretData(t, st, key)[privateKeyFile])
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(fixture.ConfigMapData(t, st, publicKeys.Namespace, publicKeys.Name)["service-account-001.pub"]))
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil || !private.(*rsa.PrivateKey).PublicKey.Equal(public) {
		t.Errorf("the published key is not that of the private key: %v", err)
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
