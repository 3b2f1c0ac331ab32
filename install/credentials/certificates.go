// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
	"github.com/solonode/sno/render/inputs"
)

// Objects of the machine-config server: its CA, the trusted bundle, and its certificate (U-INS-22).
const (
	serverNamespace = "openshift-machine-config-operator"
	serverCA        = "machine-config-server-ca"
	serverTLS       = "machine-config-server-tls"
	bundleKey       = "ca-bundle.crt"
)

// Annotations and labels that library-go's certificate rotation reads.
const (
	notAfter  = "auth.openshift.io/certificate-not-after"
	notBefore = "auth.openshift.io/certificate-not-before"
	issuer    = "auth.openshift.io/certificate-issuer"
	kind      = "auth.openshift.io/managed-certificate-type"
	component = "openshift.io/owning-component"
)

// machineConfigServer makes the server's certificate and its CA, which is valid after the bootstrap phase, for workers
// that are added later (R-WRK-1).
func machineConfigServer(o Options) (objects []runtime.Object, authority, server, key []byte, err error) {
	caCert, caKey, caPEM, caKeyPEM, err := sign(o, authorityOf("machine-config-server-ca"), nil, nil)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	_, _, serverPEM, serverKeyPEM, err := sign(o, serving("system:machine-config-server", "api-int."+o.Domain, "localhost"), caCert, caKey)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	annotations := map[string]string{
		notBefore: caCert.NotBefore.Format(time.RFC3339), notAfter: caCert.NotAfter.Format(time.RFC3339), issuer: caCert.Issuer.CommonName,
		component: "Machine Config Operator",
	}
	signer := secret(serverNamespace, serverCA, corev1.SecretTypeTLS, map[string][]byte{corev1.TLSCertKey: caPEM, corev1.TLSPrivateKeyKey: caKeyPEM})
	signer.Annotations, signer.Labels = annotations, map[string]string{kind: "signer"}
	bundle := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: serverNamespace, Name: serverCA, Labels: map[string]string{kind: "ca-bundle"}, Annotations: map[string]string{component: "Machine Config Operator"},
		},
		Data: map[string]string{bundleKey: string(caPEM)},
	}
	root := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "root-ca"}, Data: map[string]string{"ca.crt": string(caPEM)},
	}
	return []runtime.Object{
		signer, bundle, root,
		secret(serverNamespace, serverTLS, corev1.SecretTypeTLS, map[string][]byte{corev1.TLSCertKey: serverPEM, corev1.TLSPrivateKeyKey: serverKeyPEM}),
	}, caPEM, serverPEM, serverKeyPEM, nil
}

// statusServer makes the certificate of the status endpoint and its authority, whose key nobody needs again.
func statusServer(o Options) (authority, server, key []byte, err error) {
	ca, caKey, authority, _, err := sign(o, authorityOf("sno-install-status-ca"), nil, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	_, _, server, key, err = sign(o, serving("sno-install", "api."+o.Domain), ca, caKey)
	return authority, server, key, err
}

func authorityOf(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

func serving(name string, hosts ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// sign makes a key and its certificate, which is self-signed without a parent.
func sign(o Options, template, parent *x509.Certificate, parentKey crypto.Signer) (c *x509.Certificate, key crypto.Signer, certPEM, keyPEM []byte, err error) {
	fail := func(err error) (*x509.Certificate, crypto.Signer, []byte, []byte, error) {
		return nil, nil, nil, nil, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	if c, err = issue(template, o.Now, o.Validity, private, parent, parentKey); err != nil {
		return fail(err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return fail(err)
	}
	return c, private, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), keyPEM, nil
}

// issue signs the certificate of a key, which is self-signed without a parent.
func issue(template *x509.Certificate, now time.Time, validity time.Duration, key crypto.Signer, parent *x509.Certificate, parentKey crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	// The clock of a node may be a little behind.
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, now.Add(-time.Minute).UTC(), now.Add(validity).UTC()
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	return x509.ParseCertificate(der) //nolint:wrapcheck // the caller does
}

// checkAge returns ErrTooOld with every certificate that has ended or is too old.
func (s *State) checkAge(at string, now time.Time) error {
	var errs []error
	check := func(name string, pem []byte) {
		chain, err := cert.ParseCertsPEM(pem)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %w", name, ErrState, err))
			return
		}
		for _, c := range chain {
			switch {
			case now.After(c.NotAfter):
				errs = append(errs, fmt.Errorf("%s: %w: it ended at %s", name, ErrTooOld, c.NotAfter.Format(time.RFC3339)))
			case now.Sub(c.NotBefore) > MaxAge:
				errs = append(errs, fmt.Errorf("%s: %w: it is from %s, more than %s ago, and ends at %s",
					name, ErrTooOld, c.NotBefore.Format(time.RFC3339), MaxAge, c.NotAfter.Format(time.RFC3339)))
			}
		}
	}
	for _, f := range s.Manifests {
		certificates, err := certificatesOf(f)
		if err != nil {
			errs = append(errs, err)
		}
		for _, pem := range certificates {
			check(filepath.Join(at, manifestDir, f.Path), pem)
		}
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Kubeconfig)
	if err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrState, err))
	} else {
		check(filepath.Join(at, kubeconfigFile), config.CertData)
	}
	return errors.Join(errs...)
}

func certificatesOf(f files.File) ([][]byte, error) {
	var object struct {
		Kind string
		Data map[string]string
	}
	if err := yaml.Unmarshal(f.Content, &object); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", f.Path, ErrState, err)
	}
	if object.Kind == "ConfigMap" {
		if bundle := cmp.Or(object.Data[bundleKey], object.Data["ca.crt"]); bundle != "" {
			return [][]byte{[]byte(bundle)}, nil
		}
		return nil, nil
	}
	var s corev1.Secret
	if err := yaml.Unmarshal(f.Content, &s); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", f.Path, ErrState, err)
	}
	if pem := s.Data[corev1.TLSCertKey]; len(pem) > 0 {
		return [][]byte{pem}, nil
	}
	return nil, nil
}

// WorkerCA returns the CA of the machine-config server in PEM, and its end. It may be older than MaxAge, but a CA that
// has ended is ErrTooOld (R-WRK-1).
func (s *State) WorkerCA(now time.Time) ([]byte, time.Time, error) {
	for _, f := range s.Manifests {
		if f.Path != "credentials_configmap_"+serverNamespace+"_"+serverCA+".yaml" {
			continue
		}
		certificates, err := certificatesOf(f)
		if err != nil || len(certificates) == 0 {
			return nil, time.Time{}, errors.Join(fmt.Errorf("%s: %w: it has no %s", f.Path, ErrState, bundleKey), err)
		}
		end, err := NotAfter(certificates[0], now)
		if err != nil {
			err = fmt.Errorf("%s: %w", f.Path, err)
		}
		return certificates[0], end, err
	}
	return nil, time.Time{}, fmt.Errorf("%w: no CA of a machine-config server, as in profile %s", ErrState, inputs.Kubernetes)
}

// NotAfter returns the end of the last certificate of a bundle. If all have ended, the error is ErrTooOld.
func NotAfter(pem []byte, now time.Time) (time.Time, error) {
	chain, err := cert.ParseCertsPEM(pem)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	var end time.Time
	for _, c := range chain {
		if c.NotAfter.After(end) {
			end = c.NotAfter
		}
	}
	if now.After(end) {
		return end, fmt.Errorf("%w: the CA of the machine-config server ended at %s", ErrTooOld, end.Format(time.RFC3339))
	}
	return end, nil
}
