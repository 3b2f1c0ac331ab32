// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/solonode/sno/install/internal/fixture"
	"github.com/solonode/sno/install/node"
)

// Each certificate is valid for its use and as long as the installer's, and no other signer's.
func TestBootstrapFiles(t *testing.T) {
	now := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	list := fixture.Must(BootstrapFiles(t.Context(), BootstrapOptions{
		Domain: "sno.example.com", ServiceNetwork: []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16"), netip.MustParsePrefix("fd02::/112")}, Now: now,
		RootCA: []byte("a CA"),
	}))
	texts := map[string][]byte{}
	for _, f := range list {
		if texts[f.Path] != nil || f.Mode != 0o600 {
			t.Errorf("%s is there twice, or has mode %o", f.Path, f.Mode)
		}
		texts[f.Path] = f.Content
	}
	chain := func(name string) []*x509.Certificate {
		t.Helper()
		found, err := cert.ParseCertsPEM(texts["tls/"+name+".crt"])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return found
	}
	pool := func(names ...string) *x509.CertPool {
		p := x509.NewCertPool()
		for _, name := range names {
			for _, c := range chain(name) {
				p.AddCert(c)
			}
		}
		return p
	}
	verify := func(c *x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, name string, at time.Time) error {
		_, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	for _, c := range bootstrapCertificates {
		if c.signer == "" {
			continue
		}
		first, roots, usage := chain(c.name)[0], pool(c.signer), x509.ExtKeyUsageClientAuth
		if c.server != nil {
			usage = x509.ExtKeyUsageServerAuth
		}
		for _, at := range []time.Time{now, now.Add(min(c.validity, node.BootstrapValidity) - time.Minute)} {
			if err := verify(first, roots, usage, "", at); err != nil {
				t.Errorf("%s at %s: %v", c.name, at, err)
			}
		}
		if verify(first, roots, usage, "", now.Add(c.validity+time.Minute)) == nil || !first.NotAfter.Equal(now.Add(c.validity)) {
			t.Errorf("%s ends at %s, want after %s", c.name, first.NotAfter, c.validity)
		}
		if _, err := tls.X509KeyPair(texts["tls/"+c.name+".crt"], texts["tls/"+c.name+".key"]); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(chain(c.name)) == 2 != c.chain {
			t.Errorf("%s has %d certificates", c.name, len(chain(c.name)))
		}
	}
	for name, host := range map[string]string{
		"kube-apiserver-lb-server": "api.sno.example.com", "kube-apiserver-internal-lb-server": "api-int.sno.example.com", "kube-apiserver-localhost-server": "127.0.0.1",
		"kube-apiserver-service-network-server": "172.30.0.1",
	} {
		if err := chain(name)[0].VerifyHostname(host); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := chain("kube-apiserver-service-network-server")[0].VerifyHostname("fd02::1"); err != nil {
		t.Error(err)
	}
	// Who may request certificates of nodes, and who administers.
	if c := chain("kubelet-client")[0]; c.Subject.CommonName != kubelets || len(c.Subject.Organization) != 2 {
		t.Errorf("kubelet-client: %s", c.Subject)
	}
	clients := pool("kube-apiserver-complete-client-ca-bundle")
	for _, name := range []string{"admin-kubeconfig-client", "kube-control-plane-kube-scheduler-client", "kubelet-client"} {
		if err := verify(chain(name)[0], clients, x509.ExtKeyUsageClientAuth, "", now); err != nil {
			t.Errorf("%s is no client of kube-apiserver: %v", name, err)
		}
	}
	if verify(chain("aggregator-client")[0], clients, x509.ExtKeyUsageClientAuth, "", now) == nil {
		t.Error("the aggregator's client is a client of kube-apiserver")
	}
	if texts["tls/admin-kubeconfig-signer.key"] != nil || string(texts["tls/root-ca.crt"]) != "a CA" {
		t.Error("the key of the administrators' signer is there, or another root CA")
	}
	for _, name := range []string{"service-account", "bound-service-account-signing-key"} {
		public, err := keyutil.ParsePublicKeysPEM(texts["tls/"+name+".pub"])
		if err != nil || len(public) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := keyutil.ParsePrivateKeyPEM(texts["tls/"+name+".key"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		AdminKubeconfig: "https://api.sno.example.com:6443", "auth/kubeconfig": "https://api-int.sno.example.com:6443",
		"auth/kubeconfig-loopback": "https://localhost:6443", "auth/kubeconfig-kubelet": "https://api-int.sno.example.com:6443",
	} {
		config, err := clientcmd.RESTConfigFromKubeConfig(texts[name])
		if err != nil || config.Host != want || !strings.Contains(string(config.CAData), "CERTIFICATE") {
			t.Errorf("%s: %+v, %v", name, config, err)
		}
	}
}
