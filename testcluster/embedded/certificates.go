// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// leafValidity exceeds the lifetime of a cluster, and bounds how long credentials in a kept folder work.
const leafValidity = 30 * 24 * time.Hour

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of certificate authority %s: %w", name, err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority %s: %w", name, err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

type identity struct {
	cert, key []byte
}

// issue signs a new identity. A config with alternative names is a server's; all others are clients'.
func (a *authority) issue(config cert.Config) (identity, error) {
	fail := func(err error) (identity, error) {
		return identity{}, fmt.Errorf("issue a certificate for %s: %w", config.CommonName, err)
	}
	keyPEM, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fail(err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return fail(err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return fail(fmt.Errorf("a key of type %T cannot sign", parsed))
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fail(err)
	}
	usage := x509.ExtKeyUsageClientAuth
	if len(config.AltNames.IPs)+len(config.AltNames.DNSNames) > 0 {
		usage = x509.ExtKeyUsageServerAuth
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		DNSNames:     config.AltNames.DNSNames,
		IPAddresses:  config.AltNames.IPs,
		NotBefore:    a.certificate.NotBefore,
		NotAfter:     time.Now().Add(leafValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return fail(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return fail(err)
	}
	certPEM, err := cert.EncodeCertificates(leaf)
	if err != nil {
		return fail(err)
	}
	return identity{cert: certPEM, key: keyPEM}, nil
}

func (i identity) write(dir, name string) error {
	if err := cert.WriteCert(filepath.Join(dir, name+".crt"), i.cert); err != nil {
		return fmt.Errorf("write the certificate %s: %w", name, err)
	}
	if err := keyutil.WriteKey(filepath.Join(dir, name+".key"), i.key); err != nil {
		return fmt.Errorf("write the key %s: %w", name, err)
	}
	return nil
}

type credentials struct {
	ca    *authority
	caPEM []byte
	// serverName is the name in the certificate of the API server. Empty: the host of its URL.
	serverName string
}

const (
	caName             = "ca"
	frontProxyCAName   = "front-proxy-ca"
	frontProxyName     = "front-proxy-client"
	servingName        = "apiserver"
	serviceAccountName = "service-account"
)

// newCredentials creates and writes into dir: the cluster's CA, the serving certificate of the API server, the CA and
// client certificate of the front proxy (for the aggregation layer), and the key that signs service account tokens.
func newCredentials(dir string, serviceIP net.IP) (*credentials, error) {
	ca, err := newAuthority("sno-cluster-ca")
	if err != nil {
		return nil, err
	}
	frontProxyCA, err := newAuthority("sno-front-proxy-ca")
	if err != nil {
		return nil, err
	}
	for name, a := range map[string]*authority{caName: ca, frontProxyCAName: frontProxyCA} {
		certPEM, err := cert.EncodeCertificates(a.certificate)
		if err != nil {
			return nil, fmt.Errorf("encode certificate authority %s: %w", name, err)
		}
		keyPEM, err := keyutil.MarshalPrivateKeyToPEM(a.key)
		if err != nil {
			return nil, fmt.Errorf("encode the key of certificate authority %s: %w", name, err)
		}
		if err := (identity{cert: certPEM, key: keyPEM}).write(dir, name); err != nil {
			return nil, err
		}
	}
	serving, err := ca.issue(cert.Config{CommonName: "kube-apiserver", AltNames: cert.AltNames{
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:      []net.IP{net.IPv4(127, 0, 0, 1), serviceIP},
	}})
	if err != nil {
		return nil, err
	}
	if err := serving.write(dir, servingName); err != nil {
		return nil, err
	}
	frontProxy, err := frontProxyCA.issue(cert.Config{CommonName: frontProxyName})
	if err != nil {
		return nil, err
	}
	if err := frontProxy.write(dir, frontProxyName); err != nil {
		return nil, err
	}
	signing, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, fmt.Errorf("make the service account key: %w", err)
	}
	if err := keyutil.WriteKey(filepath.Join(dir, serviceAccountName+".key"), signing); err != nil {
		return nil, fmt.Errorf("write the service account key: %w", err)
	}
	caPEM, err := cert.EncodeCertificates(ca.certificate)
	if err != nil {
		return nil, fmt.Errorf("encode the certificate authority: %w", err)
	}
	return &credentials{ca: ca, caPEM: caPEM}, nil
}
