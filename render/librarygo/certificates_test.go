// SPDX-License-Identifier: Apache-2.0

package librarygo_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/cert"

	"github.com/solonode/sno/render/fixture"
	"github.com/solonode/sno/render/librarygo"
	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

const (
	day            = 24 * time.Hour
	signerValidity = 100 * day
	validity       = 30 * day
)

func in(name string) store.Object { return store.Object{Namespace: namespace, Name: name} }

func certificate(target string) librarygo.Certificate {
	return librarygo.Certificate{Signer: in("signer"), SignerValidity: signerValidity, Bundle: in("bundle"), Target: in(target), Validity: validity, Component: "owner", Description: "what for"}
}

func client(target string) librarygo.Certificate {
	c := certificate(target)
	c.Client = &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes", "system:masters"}}
	return c
}

func serving(target string, hosts ...string) librarygo.Certificate {
	c := certificate(target)
	c.Hosts = func() ([]string, error) { return hosts, nil }
	return c
}

func parse(t *testing.T, pem []byte) []*x509.Certificate {
	t.Helper()
	certificates, err := cert.ParseCertsPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	return certificates
}

func leaf(t *testing.T, s *store.Store, name string) *x509.Certificate {
	t.Helper()
	secret := secrets(t, s, namespace)[name]
	if secret == nil {
		t.Fatalf("there is no secret %s", name)
	}
	if len(secret.Data["tls.key"]) == 0 {
		t.Errorf("secret %s has no key", name)
	}
	return parse(t, secret.Data["tls.crt"])[0]
}

func bundle(t *testing.T, s *store.Store) []*x509.Certificate {
	t.Helper()
	return parse(t, []byte(configMaps(t, s, namespace)["bundle"].Data["ca-bundle.crt"]))
}

// verify checks that the bundle trusts the certificate now, for each usage.
func verify(t *testing.T, bundle []*x509.Certificate, c *x509.Certificate, usages ...x509.ExtKeyUsage) {
	t.Helper()
	roots := x509.NewCertPool()
	for _, ca := range bundle {
		roots.AddCert(ca)
	}
	fixture.Verify(t, roots, c, "", usages...)
}

func TestCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		peer := serving("peer", "10.0.0.1", "localhost")
		peer.Client = &user.DefaultInfo{Name: "system:etcd-peer:a", Groups: []string{"system:etcd-peers"}}
		ca := certificate("ca")
		ca.CA = "intermediate"
		step := loop.Once(librarygo.CertRotation("certificates", client("client"), serving("serving", "api.example.org", "10.0.0.1", "fd00::1"), peer, ca))
		if !must(t, s, step) {
			t.Fatal("nothing was written")
		}
		trusted := bundle(t, s)
		if len(trusted) != 1 || !trusted[0].Equal(leaf(t, s, "signer")) {
			t.Errorf("the bundle has %d certificates, want the signer's", len(trusted))
		}

		c := leaf(t, s, "client")
		verify(t, trusted, c, x509.ExtKeyUsageClientAuth)
		if c.Subject.CommonName != "system:node:a" || !slices.Equal(c.Subject.Organization, []string{"system:masters", "system:nodes"}) && !slices.Equal(c.Subject.Organization, []string{"system:nodes", "system:masters"}) {
			t.Errorf("the client is %s", c.Subject)
		}
		if slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
			t.Error("the client's certificate is good for a server")
		}

		c = leaf(t, s, "serving")
		verify(t, trusted, c, x509.ExtKeyUsageServerAuth)
		for _, host := range []string{"api.example.org", "10.0.0.1", "fd00::1"} {
			if err := c.VerifyHostname(host); err != nil {
				t.Error(err)
			}
		}
		if c.VerifyHostname("localhost") == nil || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
			t.Errorf("the server's certificate is good for %v, %v", c.DNSNames, c.ExtKeyUsage)
		}

		c = leaf(t, s, "peer")
		verify(t, trusted, c, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
		if err := errors.Join(c.VerifyHostname("10.0.0.1"), c.VerifyHostname("localhost")); err != nil || c.Subject.CommonName != "system:etcd-peer:a" || !slices.Equal(c.Subject.Organization, []string{"system:etcd-peers"}) {
			t.Errorf("the peer is %s, %v", c.Subject, err)
		}

		c = leaf(t, s, "ca")
		verify(t, trusted, c, x509.ExtKeyUsageAny)
		if !c.IsCA || !strings.HasPrefix(c.Subject.CommonName, "intermediate_@") {
			t.Errorf("the intermediate is %s, CA %t", c.Subject, c.IsCA)
		}

		for name, want := range map[string]time.Duration{"signer": signerValidity, "client": validity, "serving": validity, "peer": validity, "ca": validity} {
			if got := time.Until(leaf(t, s, name).NotAfter); got < want-time.Minute || got > want {
				t.Errorf("%s lasts %s, want %s", name, got, want)
			}
			annotations, description := secrets(t, s, namespace)[name].Annotations, "what for"
			if name == "signer" {
				description = "" // It is shared, so nothing of one certificate is written on it.
			}
			if annotations["openshift.io/owning-component"] != "owner" || annotations["openshift.io/description"] != description {
				t.Errorf("%s has the annotations %v", name, annotations)
			}
		}
		if must(t, s, step) {
			t.Error("a second run wrote something")
		}
	})
}

// Certificates are renewed after 80 % of their validity (R-REN-10). The bundle trusts old and new ones.
func TestRenewal(t *testing.T) {
	for _, test := range []struct {
		name                   string
		validity, signer, wait time.Duration
		leaf, ca               bool // renewed?
		cas                    int  // CAs of the bundle afterwards
	}{
		{"before 80 %", validity, signerValidity, validity*8/10 - time.Minute, false, false, 1},
		{"after 80 %", validity, signerValidity, validity*8/10 + time.Minute, true, false, 1},
		{"after its end", validity, signerValidity, validity + time.Minute, true, false, 1},
		{"signer after 80 %", 90 * day, signerValidity, signerValidity*8/10 + time.Minute, true, true, 2},
		{"signer after 80 %, and the certificate is young", 300 * day, signerValidity, signerValidity*8/10 + time.Minute, true, true, 2},
		{"signer after its end", validity, signerValidity, signerValidity + time.Minute, true, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				c, h := client("client"), serving("serving", "localhost")
				c.Validity, c.SignerValidity, h.Validity, h.SignerValidity = test.validity, test.signer, test.validity, test.signer
				step := loop.Once(librarygo.CertRotation("certificates", c, h))
				must(t, s, step)
				oldClient, oldSigner, oldKey := leaf(t, s, "client"), leaf(t, s, "signer"), secrets(t, s, namespace)["client"].Data["tls.key"]
				if oldClient.NotAfter.After(oldSigner.NotAfter) {
					t.Errorf("the certificate lasts until %s, its signer until %s", oldClient.NotAfter, oldSigner.NotAfter)
				}

				wait(test.wait)
				if wrote := must(t, s, step); wrote != (test.leaf || test.ca) {
					t.Errorf("wrote: %t", wrote)
				}
				newClient, newSigner, trusted := leaf(t, s, "client"), leaf(t, s, "signer"), bundle(t, s)
				if renewed := !newClient.Equal(oldClient); renewed != test.leaf {
					t.Errorf("the certificate was renewed: %t", renewed)
				}
				if renewed := !bytes.Equal(secrets(t, s, namespace)["client"].Data["tls.key"], oldKey); renewed != test.leaf {
					t.Errorf("the key was renewed: %t", renewed)
				}
				if renewed := !newSigner.Equal(oldSigner); renewed != test.ca {
					t.Errorf("the signer was renewed: %t", renewed)
				}
				if len(trusted) != test.cas {
					t.Errorf("the bundle has %d certificates, want %d", len(trusted), test.cas)
				}
				verify(t, trusted, newClient, x509.ExtKeyUsageClientAuth)
				verify(t, trusted, leaf(t, s, "serving"), x509.ExtKeyUsageServerAuth)
				if oldClient.NotAfter.After(time.Now()) {
					verify(t, trusted, oldClient, x509.ExtKeyUsageClientAuth)
				}
				if must(t, s, step) {
					t.Error("a second run after the renewal has written something")
				}

				if test.cas == 2 {
					wait(time.Until(oldSigner.NotAfter) + time.Minute)
					must(t, s, step)
					if trusted := bundle(t, s); slices.ContainsFunc(trusted, oldSigner.Equal) {
						t.Error("the bundle has a CA that has ended")
					}
				}
			})
		})
	}
}

// Other hosts need a new certificate, but no new signer.
func TestNewHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		must(t, s, loop.Once(librarygo.CertRotation("certificates", serving("serving", "a.example.org"), client("client"))))
		signer, owner := leaf(t, s, "signer"), leaf(t, s, "client")
		must(t, s, loop.Once(librarygo.CertRotation("certificates", serving("serving", "a.example.org", "b.example.org"), client("client"))))
		if err := leaf(t, s, "serving").VerifyHostname("b.example.org"); err != nil {
			t.Error(err)
		}
		if !leaf(t, s, "signer").Equal(signer) || !leaf(t, s, "client").Equal(owner) {
			t.Error("signer or client were renewed")
		}
	})
}

func TestCertificateInPart(t *testing.T) {
	errHosts := errors.New("no network")
	for _, test := range []struct {
		name   string
		change func(*librarygo.Certificate)
		is     error
	}{
		{"neither client nor hosts nor CA", func(c *librarygo.Certificate) { c.Client = nil }, librarygo.ErrCertificate},
		{"client and CA", func(c *librarygo.Certificate) { c.CA = "a" }, librarygo.ErrCertificate},
		{"hosts and CA", func(c *librarygo.Certificate) {
			c.CA, c.Client, c.Hosts = "a", nil, func() ([]string, error) { return nil, nil }
		}, librarygo.ErrCertificate},
		{"no signer", func(c *librarygo.Certificate) { c.Signer.Name = "" }, librarygo.ErrCertificate},
		{"no bundle", func(c *librarygo.Certificate) { c.Bundle.Name = "" }, librarygo.ErrCertificate},
		{"no target", func(c *librarygo.Certificate) { c.Target.Name = "" }, librarygo.ErrCertificate},
		{"no validity", func(c *librarygo.Certificate) { c.Validity = 0 }, librarygo.ErrCertificate},
		{"no validity of the signer", func(c *librarygo.Certificate) { c.SignerValidity = 0 }, librarygo.ErrCertificate},
		{"hosts are unknown", func(c *librarygo.Certificate) { c.Hosts = func() ([]string, error) { return nil, errHosts } }, errHosts},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := client("client")
			test.change(&c)
			s := newStore(t)
			before := s.Version()
			err := run(t, s, loop.Once(librarygo.CertRotation("certificates", c)))
			if !errors.Is(err, test.is) || !errors.Is(err, loop.ErrFailed) {
				t.Errorf("got %v, want %v", err, test.is)
			}
			fails(t, err, `"certificates"`, c.Target.String())
			if s.Version() != before {
				t.Error("something was written")
			}
		})
	}
}
