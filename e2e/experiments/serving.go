// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	kubeletPort = "10250"
	// A kubelet renews its certificate at nine tenths of the validity at the latest.
	agedSince, agedUntil = -time.Hour, 5 * time.Minute

	servingFile   = "/var/lib/kubelet/pki/kubelet-server-current.pem"
	replaceScript = `set -e
systemctl stop kubelet
cat >/var/lib/kubelet/pki/kubelet-server-aged.pem
ln --symbolic --force kubelet-server-aged.pem ` + servingFile + `
systemctl start kubelet`
)

// served waits until the kubelet serves with a valid certificate for its name and address, other than the old one, and
// reads the pod's log through the API server.
func (j *joiner) served(ctx context.Context, pod *corev1.Pod, old *x509.Certificate) error {
	err := until(ctx, "the kubelet serves with its certificate", waitTimeout, func(ctx context.Context) error {
		current, err := j.servingCertificate(ctx)
		if err != nil {
			return err
		}
		if old != nil && current.Equal(old) {
			return fmt.Errorf("%w: it still uses the former certificate", errServes)
		}
		return current.VerifyHostname(j.address) //nolint:wrapcheck // complete
	})
	if err != nil {
		return err
	}
	// A kubelet that has just started may not have its pods yet.
	return until(ctx, "the log of a pod can be read", waitTimeout, func(ctx context.Context) error {
		text, err := podLog(ctx, j.Env, pod)
		if err == nil && text != hello {
			return fmt.Errorf("%w: the log of a pod is %q", errServes, text)
		}
		return err
	})
}

// servingCertificate returns the kubelet's serving certificate, verified for the node's name.
func (j *joiner) servingCertificate(ctx context.Context) (*x509.Certificate, error) {
	roots, err := cert.NewPool(j.authority)
	if err != nil {
		return nil, fmt.Errorf("read the CA of kubelets: %w", err)
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: j.node, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(j.address, kubeletPort))
	if err != nil {
		return nil, fmt.Errorf("connect to the kubelet of node %s: %w", j.node, err)
	}
	defer func() { _ = connection.Close() }()
	secured, ok := connection.(*tls.Conn)
	if !ok {
		return nil, fmt.Errorf("%w: without TLS", errServes)
	}
	return secured.ConnectionState().PeerCertificates[0], nil
}

// age replaces the kubelet's certificate by an equal one that has nearly expired, and returns it.
func (j *joiner) age(ctx context.Context) (*x509.Certificate, error) {
	current, err := j.servingCertificate(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := cert.CertsFromFile(j.authority)
	if err != nil {
		return nil, fmt.Errorf("read the CA of kubelets: %w", err)
	}
	text, err := j.onControlPlane(ctx, "cat", "/etc/kubernetes/pki/ca.key")
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM([]byte(text + "\n"))
	if err != nil {
		return nil, fmt.Errorf("read the key of the CA of kubelets: %w", err)
	}
	aged, file, err := age(current, authority[0], key)
	if err != nil {
		return nil, err
	}
	if _, err := j.Kind.Engine().Pipe(ctx, bytes.NewReader(file), "exec", "--interactive", j.node, "sh", "-c", replaceScript); err != nil {
		return nil, err
	}
	return aged, nil
}

// age makes a certificate for the same names, with a new key, that has nearly expired, and the kubelet's file with
// both.
func age(current, authority *x509.Certificate, signer crypto.PrivateKey) (*x509.Certificate, []byte, error) {
	fail := func(err error) (*x509.Certificate, []byte, error) {
		return nil, nil, fmt.Errorf("make a certificate that has nearly expired: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fail(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: current.Subject, DNSNames: current.DNSNames, IPAddresses: current.IPAddresses,
		NotBefore: time.Now().Add(agedSince), NotAfter: time.Now().Add(agedUntil), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, key.Public(), signer)
	if err != nil {
		return fail(err)
	}
	aged, err := x509.ParseCertificate(der)
	if err != nil {
		return fail(err)
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fail(err)
	}
	return aged, append(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), secret...), nil
}
