// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
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

// identity is a certificate and its key, both PEM.
type identity struct{ cert, key []byte }

// issue signs a new identity. A config with alternative names is a server's; all others are clients'.
func (a *authority) issue(config cert.Config) (identity, error) {
	usage := x509.ExtKeyUsageClientAuth
	if len(config.AltNames.IPs)+len(config.AltNames.DNSNames) > 0 {
		usage = x509.ExtKeyUsageServerAuth
	}
	template := &x509.Certificate{ // without a serial number it gets a random one
		Subject:     pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		DNSNames:    config.AltNames.DNSNames,
		IPAddresses: config.AltNames.IPs,
		NotBefore:   a.certificate.NotBefore,
		NotAfter:    time.Now().Add(leafValidity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("make the key of %s: %w", config.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return identity{}, fmt.Errorf("issue a certificate for %s: %w", config.CommonName, err)
	}
	return identityOf(der, key)
}

func identityOf(der []byte, key crypto.Signer) (identity, error) {
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return identity{}, fmt.Errorf("encode a key: %w", err)
	}
	return identity{cert: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key: encoded}, nil
}

func (i identity) write(dir, name string) error {
	err := errors.Join(cert.WriteCert(filepath.Join(dir, name+".crt"), i.cert), keyutil.WriteKey(filepath.Join(dir, name+".key"), i.key))
	if err != nil {
		return fmt.Errorf("write the certificate and the key %s: %w", name, err)
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
	identities := map[string]identity{}
	for name, a := range map[string]*authority{caName: ca, frontProxyCAName: frontProxyCA} {
		if identities[name], err = identityOf(a.certificate.Raw, a.key); err != nil {
			return nil, err
		}
	}
	if identities[servingName], err = ca.issue(cert.Config{CommonName: "kube-apiserver", AltNames: cert.AltNames{
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:      []net.IP{net.IPv4(127, 0, 0, 1), serviceIP},
	}}); err != nil {
		return nil, err
	}
	if identities[frontProxyName], err = frontProxyCA.issue(cert.Config{CommonName: frontProxyName}); err != nil {
		return nil, err
	}
	for name, identity := range identities {
		if err := identity.write(dir, name); err != nil {
			return nil, err
		}
	}
	signing, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, fmt.Errorf("make the service account key: %w", err)
	}
	if err := keyutil.WriteKey(filepath.Join(dir, serviceAccountName+".key"), signing); err != nil {
		return nil, fmt.Errorf("write the service account key: %w", err)
	}
	return &credentials{ca: ca, caPEM: identities[caName].cert}, nil
}
