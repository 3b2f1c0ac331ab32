// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/solonode/sno/approver/requests"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var key = func() func(string) crypto.Signer {
	curves := map[string]elliptic.Curve{"p224": elliptic.P224(), "p384": elliptic.P384(), "p521": elliptic.P521()}
	keys := map[string]crypto.Signer{}
	return func(name string) crypto.Signer {
		if keys[name] == nil {
			switch {
			case strings.HasPrefix(name, "rsa"):
				keys[name] = must(rsa.GenerateKey(rand.Reader, must(strconv.Atoi(name[3:]))))
			case name == "ed25519":
				_, private, err := ed25519.GenerateKey(rand.Reader)
				keys[name] = must(private, err)
			default:
				keys[name] = must(ecdsa.GenerateKey(cmp.Or(curves[name], elliptic.P256()), rand.Reader))
			}
		}
		return keys[name]
	}
}()

func nodeSubject(node string) pkix.Name {
	return pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node}
}

// setNames sets DNS names and IP addresses, by their form.
func setNames(template *x509.CertificateRequest, names ...string) {
	template.DNSNames, template.IPAddresses = nil, nil
	for _, name := range names {
		if ip, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
}

// cluster returns the authority of the kubelets, with key("kubelets").
var cluster = sync.OnceValue(func() *x509.Certificate {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubelets"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return certificate(template, template, "kubelets")
})

func certificate(template, parent *x509.Certificate, of string) *x509.Certificate {
	template.SerialNumber = big.NewInt(1)
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, parent, key(of).Public(), key("kubelets")))))
}

func presented(subject pkix.Name, names x509.CertificateRequest, change func(*x509.Certificate)) *requests.KubeletCertificate {
	template := &x509.Certificate{
		Subject: subject, DNSNames: names.DNSNames, IPAddresses: names.IPAddresses, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	change(template)
	roots := x509.NewCertPool()
	roots.AddCert(cluster())
	return &requests.KubeletCertificate{Chain: []*x509.Certificate{certificate(template, cluster(), "presented")}, Roots: roots}
}

func marshal(value any) []byte { return must(asn1.Marshal(value)) }

func sequence(parts ...[]byte) []byte {
	return marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: slices.Concat(parts...)})
}

func signed(body []byte, by crypto.Signer) []byte {
	hash := sha256.Sum256(body)
	signature := must(by.Sign(rand.Reader, hash[:], crypto.SHA256))
	ecdsaWithSHA256 := asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}
	return sequence(body, sequence(marshal(ecdsaWithSHA256)), marshal(asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}))
}

func requestPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

var tokenGroups = []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"}
