// SPDX-License-Identifier: Apache-2.0

package installing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Certificates are found in PEM, in a kubeconfig, and in a Secret that has one.
func TestCertificatesIn(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	kubeconfig := "users:\n- user: {client-certificate-data: " + base64.StdEncoding.EncodeToString([]byte(text)) + "}\n"
	secret := "data:\n  kubeconfig: " + base64.StdEncoding.EncodeToString([]byte(kubeconfig)) + "\n"
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"PEM": {text + text, 2}, "a kubeconfig": {kubeconfig, 1}, "a Secret": {secret, 1}, "something else": {"data: {a: b}\n", 0},
	} {
		found := certificatesIn([]byte(test.text))
		if len(found) != test.want || test.want > 0 && found[0].Subject.CommonName != "a" {
			t.Errorf("%s: %d certificates, want %d", name, len(found), test.want)
		}
	}
}

// Earlier revisions, inputs of the installation and the kubelet's former certificates are not in use.
func TestInUse(t *testing.T) {
	const resources, rendered = "/etc/kubernetes/static-pod-resources/", "/var/lib/sno/rendered/"
	want := []string{
		resources + "etcd-certs/secrets/etcd-all-certs/etcd-peer-a.crt",
		resources + "etcd-pod-10/secrets/etcd-all-certs/etcd-peer-a.crt",
		resources + "kube-apiserver-pod-9/secrets/etcd-client/tls.crt",
		"/var/lib/kubelet/pki/kubelet-client-current.pem",
		rendered + "auth/kubeconfig",
		rendered + "manifests/0100_openshift-etcd_secret_etcd-all-certs-10.yaml",
		rendered + "manifests/0101_openshift-etcd_secret_etcd-client.yaml",
	}
	all := map[string][]*x509.Certificate{
		resources + "etcd-pod-9/secrets/etcd-all-certs/etcd-peer-a.crt":         nil,
		"/var/lib/kubelet/pki/kubelet-client-2026-11-25-18-00-00.pem":           nil,
		"/var/lib/sno/manifests/credentials_secret_a_b.yaml":                    nil,
		rendered + "input/credentials_secret_a_b.yaml":                          nil,
		rendered + "manifests/0099_openshift-etcd_secret_etcd-all-certs-9.yaml": nil,
	}
	for _, name := range want {
		all[name] = nil
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(inUse(all)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
