// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/e2e/joining"
)

// Only times between two answers count.
func TestOutages(t *testing.T) {
	var o outages
	o.recordAnswer()
	if o.longest != 0 {
		t.Errorf("%s before there was an answer", o.longest)
	}
	o.last = o.last.Add(-time.Minute)
	o.recordAnswer()
	o.recordAnswer()
	if got := o.reset(); got.Round(time.Second) != time.Minute {
		t.Errorf("%s, want a minute", got)
	}
	if got := o.reset(); got != 0 {
		t.Errorf("%s after a reset", got)
	}
}

func TestStoppedInOrder(t *testing.T) {
	const web, etcd, rest = "default/web-1/web-server", "openshift-etcd/etcd-edge-1/etcd",
		"openshift-kube-apiserver/a/kube-apiserver openshift-kube-controller-manager/c/c openshift-kube-scheduler/s/s"
	for name, test := range map[string]struct {
		stopped string
		want    string
	}{
		"workloads first":          {web + " " + etcd + " " + rest, ""},
		"a static pod was updated": {etcd + " " + web + " " + etcd + " " + rest, ""},
		"etcd before a workload":   {etcd + " " + web + " " + rest, "workloads until line 2"},
		"no workload":              {etcd + " " + rest, "workloads stopped at line 0"},
		"etcd is not stopped":      {web + " " + rest, "workloads stopped at line 1"},
		"a kill":                   {web + " " + etcd + " " + rest + " killed", "timed out. Killing"},
	} {
		t.Run(name, func(t *testing.T) {
			var journal strings.Builder
			for _, container := range strings.Fields(test.stopped) {
				if container == "killed" {
					journal.WriteString(`level=warning msg="Stopping container 0123 with stop signal(15) timed out. Killing..."` + "\n")
				} else {
					journal.WriteString(`level=info msg="Stopped container 0123: ` + container + `" id=4567` + "\n")
				}
			}
			if got := stoppedInOrder(journal.String()); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestCutPoints(t *testing.T) {
	const length = 3 * time.Second
	before := *cuts
	*cuts = 100
	defer func() { *cuts = before }()
	all := cutPoints(7, 0, length)
	if len(all) != 100 || !slices.IsSorted(all) || all[0] < 0 || all[0] > length/4 || all[99] < length*3/4 || all[99] >= length {
		t.Errorf("100 points in %s: %v", length, all)
	}
	if !slices.Equal(all, cutPoints(7, 0, length)) {
		t.Error("the same seed gives other points")
	}
	if slices.Equal(all, cutPoints(7, 1, length)) || slices.Equal(all, cutPoints(8, 0, length)) {
		t.Error("another phase and another seed give the same points")
	}
}

// A failed unit is accepted only if its output contains an advice.
func TestAdvice(t *testing.T) {
	for text, want := range map[string]bool{
		"etcd has no data, and its only snapshot is damaged: install the node again: snapshot /a: 3 bytes": true,
		"phase render: change what the error names, and run the same command again":                        true,
		"phase api: connection refused": false, "": false,
	} {
		if got, err := beAdvice().Match(text); err != nil || got != want {
			t.Errorf("%q: %t, %v", text, got, err)
		}
	}
}

// The requests are valid, and each names its node.
func TestHostileRequests(t *testing.T) {
	RegisterTestingT(t) // for what the request needs
	g := NewWithT(t)
	documents := strings.Split(hostileRequests(), "---\n")
	g.Expect(documents).To(HaveLen(len(hostile)))
	for i, want := range hostile {
		var csr certificatesv1.CertificateSigningRequest
		g.Expect(yaml.UnmarshalStrict([]byte(documents[i]), &csr)).To(Succeed())
		block, _ := pem.Decode(csr.Spec.Request)
		g.Expect(block).NotTo(BeNil(), want.name)
		request, err := x509.ParseCertificateRequest(block.Bytes)
		g.Expect(err).NotTo(HaveOccurred(), want.name)
		g.Expect(request.CheckSignature()).To(Succeed(), want.name)
		g.Expect([]string{csr.Name, csr.Spec.SignerName, request.Subject.CommonName}).To(Equal([]string{want.name, want.signer, "system:node:" + want.node}))
		g.Expect(slices.Contains(csr.Spec.Usages, certificatesv1.UsageServerAuth)).To(Equal(strings.Contains(want.usages, "server auth")), want.name)
	}
}

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

// An entry is read from a response of etcd's HTTP gateway.
func TestEtcdEntry(t *testing.T) {
	var read etcdEntry
	const text = `{"key":"L3JlZ2lzdHJ5","create_revision":"2","mod_revision":"2","version":"1","value":"azhz"}`
	if err := json.Unmarshal([]byte(text), &read); err != nil || string(read.Key) != "/registry" || string(read.Value) != "k8s" || read.Version != 1 {
		t.Errorf("%+v, %v", read, err)
	}
	const own = "/kubernetes.io/secrets/default/" + secretName
	for name, test := range map[string]struct {
		secret etcdEntry
		faulty bool
	}{
		"aescbc":          {etcdEntry{[]byte(own), []byte("k8s:enc:aescbc:v1:1:\x00\x01"), 1}, false},
		"aesgcm":          {etcdEntry{[]byte(own), []byte("k8s:enc:aesgcm:v1:1:\x00\x01"), 1}, false},
		"another's later": {etcdEntry{[]byte("/kubernetes.io/secrets/a/b"), []byte("k8s:enc:aescbc:v1:1:\x00\x01"), 4}, false},
		"later":           {etcdEntry{[]byte(own), []byte("k8s:enc:aescbc:v1:1:\x00\x01"), 2}, true},
		"protobuf":        {etcdEntry{[]byte(own), []byte("k8s\x00\n\x0c\n\x02v1\x12\x06Secret" + secretText), 1}, true},
		"text inside":     {etcdEntry{[]byte(own), []byte("k8s:enc:aescbc:v1:1:" + secretText), 1}, true},
		"identity":        {etcdEntry{[]byte(own), []byte("k8s:enc:identity:v1:"), 1}, true},
		"empty":           {etcdEntry{[]byte(own), nil, 1}, true},
	} {
		if got := test.secret.fault(); (got != "") != test.faulty {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOfRelease(t *testing.T) {
	for file, want := range map[string]bool{
		"crds/0000_10_config-operator_01_apiservers-Default.crd.yaml":                                true,
		"crds/0000_10_config-operator_01_schedulers-SelfManagedHA-Default.crd.yaml":                  true,
		"crds/0000_10_config-operator_01_oauths.crd.yaml":                                            true,
		"crds/0000_10_config-operator_01_schedulers-Hypershift.crd.yaml":                             false,
		"crds/0000_10_config-operator_01_infrastructures-SelfManagedHA-DevPreviewNoUpgrade.crd.yaml": false,
		"crds/0000_10_config-operator_01_apiservers-OKD.crd.yaml":                                    false,
	} {
		if got := ofRelease(file); got != want {
			t.Errorf("%s: %t", file, got)
		}
	}
}

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
	whole := aged.NotAfter.Sub(aged.NotBefore)
	if latest := aged.NotBefore.Add(whole * 9 / 10); latest.After(time.Now()) || aged.NotAfter.Before(time.Now()) {
		t.Errorf("a kubelet may renew it only in %s", time.Until(latest))
	}
	if pair, err := tls.X509KeyPair(file, file); err != nil || !pair.Leaf.Equal(aged) {
		t.Errorf("the kubelet's file: %v", err)
	}
}
