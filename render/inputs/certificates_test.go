// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type authority struct {
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	text, pem string // of the certificate and of the key
}

func issue(t *testing.T, name string, signer *authority, ca bool, from, until time.Time) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if ca {
		template.KeyUsage |= x509.KeyUsageCertSign
	}
	parent, parentKey := template, key
	if signer != nil {
		parent, parentKey = signer.cert, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{
		cert: cert, key: key, text: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		pem: string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})),
	}
}

func block(text string) string {
	return " |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

func tlsSecret(name, cert, key string) change {
	return add(name+".yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: "+name+", namespace: openshift-config}\ntype: kubernetes.io/tls\nstringData:\n"+
		"  tls.key:"+block(key)+"  tls.crt:"+block(cert))
}

func bundle(name string, certs ...string) change {
	return add(name+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: openshift-config}\ndata:\n"+
		"  ca-bundle.crt:"+block(strings.Join(certs, "")))
}

func TestCertificates(t *testing.T) {
	day := 24 * time.Hour
	before, after := testNow.Add(-day), testNow.Add(day)
	root := issue(t, "root", nil, true, before, after)
	sameName := issue(t, "root", nil, true, before, after)
	intermediate := issue(t, "intermediate", root, true, before, after)
	leaf := issue(t, "leaf", intermediate, false, before, after)
	foreign := issue(t, "foreign", sameName, false, before, after)
	otherCA := issue(t, "otherCA", issue(t, "elsewhere", nil, true, before, after), false, before, after)
	old := issue(t, "old", nil, true, before.Add(-day), before)
	future := issue(t, "future", nil, true, after, after.Add(day))
	checkFaults(t, []faultsTest{
		{name: "good", changes: []change{tlsSecret("signer", root.text, root.pem), bundle("ca", root.text, intermediate.text),
			tlsSecret("leaf", leaf.text+intermediate.text, leaf.pem), tlsSecret("otherCA", otherCA.text, otherCA.pem)}},
		{name: "expired, and not yet valid", changes: []change{tlsSecret("signer", old.text, old.pem), bundle("ca", root.text, future.text)},
			want: []string{"ca.yaml:5 ConfigMap openshift-config/ca data.ca-bundle.crt (Invalid)",
				"signer.yaml:12 Secret openshift-config/signer stringData.tls.crt (Invalid)"}},
		{name: "another key", changes: []change{tlsSecret("leaf", leaf.text, foreign.pem)},
			want: []string{"leaf.yaml:6 Secret openshift-config/leaf stringData.tls.key (Invalid)"}},
		{name: "signed by another CA of that name", changes: []change{bundle("ca", root.text), tlsSecret("leaf", foreign.text, foreign.pem)},
			want: []string{"leaf.yaml:12 Secret openshift-config/leaf stringData.tls.crt (Invalid)"}},
		{name: "a bundle with another CA of the signer's name", changes: []change{bundle("ca", sameName.text), tlsSecret("signer", root.text, root.pem)},
			want: []string{"ca.yaml:5 ConfigMap openshift-config/ca data.ca-bundle.crt (Invalid)"}},
		{name: "a bundle with both", changes: []change{bundle("ca", sameName.text, root.text), tlsSecret("signer", root.text, root.pem)}},
		{name: "no certificates", changes: []change{bundle("ca", "nothing"), tlsSecret("signer", root.pem, root.pem),
			add("empty.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: empty, namespace: a}\ntype: kubernetes.io/tls\ndata: {tls.crt: \"\"}\n")},
			want: []string{"ca.yaml:5 ConfigMap openshift-config/ca data.ca-bundle.crt (Invalid)",
				"empty.yaml:5 Secret a/empty data.tls.crt (Required)",
				"signer.yaml:12 Secret openshift-config/signer stringData.tls.crt (Invalid)"}},
	}...)
}

func TestNamedCertificate(t *testing.T) {
	leaf := issue(t, "api", nil, false, testNow, testNow.Add(time.Hour))
	named := func(name string, times int) []change {
		return []change{tlsSecret("api", leaf.text, leaf.pem), {"cluster-apiserver.yaml", "spec: {}", "spec:\n  servingCerts:\n    namedCertificates:\n" +
			strings.Repeat("    - names: ["+name+"]\n      servingCertificate: {name: api}\n", times)}}
	}
	checkFaults(t, faultsTest{name: "ten", changes: named("api.sno.example.com", 10)},
		faultsTest{name: "eleven", changes: named("api.sno.example.com", 11),
			want: []string{"cluster-apiserver.yaml:7 APIServer cluster spec.servingCerts.namedCertificates (TooMany)"}},
		faultsTest{name: "the internal name", changes: named("api-int.sno.example.com", 1),
			want: []string{"cluster-apiserver.yaml:8 APIServer cluster spec.servingCerts.namedCertificates[0].names (Invalid)"}})
}

// Expired certificates do not block a renewal. Those that no loop renews cause a warning.
func TestCertificatesAgain(t *testing.T) {
	t.Parallel()
	old := issue(t, "old", nil, true, testNow.Add(-2*time.Hour), testNow.Add(-time.Hour))
	renewed := tlsSecret("renewed", old.text, old.pem)
	renewed.with = strings.Replace(renewed.with, "namespace: openshift-config}", "namespace: openshift-config, labels: {"+ManagedLabel+": signer}}", 1)
	cluster, err := ReadForRenewal(changed(t, "one-node", renewed, tlsSecret("given", old.text, old.pem)), testNow)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"given.yaml:12 Secret openshift-config/given stringData.tls.crt (Ignored)"}
	if diff := cmp.Diff(want, brief(cluster.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
