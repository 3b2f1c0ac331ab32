// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

// ManagedLabel is on the signers, bundles and certificates that loops make and renew.
const ManagedLabel = "auth.openshift.io/managed-certificate-type"

type certificate struct {
	source *document.Document
	field  string
	// renewed is true for a certificate that a loop has made and renews.
	renewed bool
	*x509.Certificate
}

// checkCertificates checks validity, keys and signers in TLS Secrets and in ConfigMaps with a CA bundle.
func (r *reader) checkCertificates() {
	var all, signers, bundled []certificate
	for _, id := range sortedIdentities(r.secrets) {
		secret := r.secrets[id]
		if secret.Type != corev1.SecretTypeTLS && (secret.Data[corev1.TLSCertKey] == nil || secret.Data[corev1.TLSPrivateKeyKey] == nil) {
			continue
		}
		chain := r.keyPair(r.sources[id], secret)
		for i := range chain {
			chain[i].renewed = secret.Labels[ManagedLabel] != ""
		}
		all = append(all, chain...)
		if len(chain) > 0 && chain[0].IsCA {
			signers = append(signers, chain[0])
		}
	}
	for _, id := range sortedIdentities(r.configMaps) {
		content := r.configMaps[id]
		for _, key := range slices.Sorted(maps.Keys(content.Data)) {
			if key == "ca-bundle.crt" || key == "ca.crt" || key == "service-ca.crt" {
				bundle := r.certificates(r.sources[id], "data."+key, []byte(content.Data[key]))
				for i := range bundle {
					bundle[i].renewed = content.Labels[ManagedLabel] != ""
				}
				all, bundled = append(all, bundle...), append(bundled, bundle...)
			}
		}
	}
	for _, cert := range all {
		switch {
		case r.now.After(cert.NotAfter) && r.renewal:
			if !cert.renewed {
				r.warn(cert.source, cert.field, "%s expired at %s; renew it", cert.Subject, cert.NotAfter.UTC().Format(time.RFC3339))
			}
		case r.now.After(cert.NotAfter):
			r.badCertificate(cert, "%s expired at %s; renew it, or remove it", cert.Subject, cert.NotAfter.UTC().Format(time.RFC3339))
		case r.now.Before(cert.NotBefore):
			r.badCertificate(cert, "%s is not valid before %s; check the clock", cert.Subject, cert.NotBefore.UTC().Format(time.RFC3339))
		}
		r.checkIssuer(cert, all)
	}
	for _, cert := range bundled {
		for _, signer := range signers {
			if cert.source == signer.source || !bytes.Equal(cert.RawSubject, signer.RawSubject) || samePublicKey(cert, signer) {
				continue
			}
			if !slices.ContainsFunc(bundled, func(other certificate) bool {
				return other.source == cert.source && other.field == cert.field && samePublicKey(other, signer)
			}) {
				r.badCertificate(cert, "another CA of that name: %s has another key in %s at %s; put the signer's certificate into the bundle",
					cert.Subject, signer.source.Object, signer.source.Place(signer.field))
			}
		}
	}
}

func (r *reader) badCertificate(cert certificate, format string, args ...any) {
	r.report(cert.source, field.Invalid(document.Path("%s", cert.field), document.Omitted, fmt.Sprintf(format, args...)))
}

func samePublicKey(a, b certificate) bool {
	return bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}

// checkIssuer finds a certificate whose issuer has the name of a CA of the input but not its key.
func (r *reader) checkIssuer(cert certificate, all []certificate) {
	var candidates []certificate
	for _, other := range all {
		if other.IsCA && bytes.Equal(other.RawSubject, cert.RawIssuer) {
			candidates = append(candidates, other)
		}
	}
	if len(candidates) == 0 || slices.ContainsFunc(candidates, func(signer certificate) bool { return cert.CheckSignatureFrom(signer.Certificate) == nil }) {
		return
	}
	first := candidates[0]
	r.badCertificate(cert, "%s is not signed by its issuer %s in %s at %s; use a certificate and a CA that match", cert.Subject, cert.Issuer,
		first.source.Object, first.source.Place(first.field))
}

// keyPair returns the certificates of a Secret, first the one of the key.
func (r *reader) keyPair(s *document.Document, secret *corev1.Secret) []certificate {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			r.report(s, field.Required(field.NewPath("data", key), "a Secret of type "+string(corev1.SecretTypeTLS)+" has tls.crt and tls.key"))
			return nil
		}
	}
	chain := r.certificates(s, dataField(s, corev1.TLSCertKey), secret.Data[corev1.TLSCertKey])
	if len(chain) == 0 {
		return nil
	}
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		r.report(s, field.Invalid(document.Path("%s", dataField(s, corev1.TLSPrivateKeyKey)), document.Omitted,
			strings.TrimPrefix(err.Error(), "tls: ")+"; use the certificate's key"))
	}
	return chain
}

func (r *reader) certificates(s *document.Document, at string, text []byte) []certificate {
	found, err := parsePEM(text)
	if err != nil {
		r.report(s, field.Invalid(document.Path("%s", at), document.Omitted, err.Error()+"; write PEM with certificates only"))
		return nil
	}
	certs := make([]certificate, len(found))
	for i := range found {
		certs[i] = certificate{source: s, field: at, Certificate: found[i]}
	}
	return certs
}

// dataField returns the field of a Secret that has the key: stringData takes precedence over data.
func dataField(s *document.Document, key string) string {
	if s.Has("stringData." + key) {
		return "stringData." + key
	}
	return "data." + key
}

func parsePEM(text []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("a %s among the certificates", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, cert)
	}
	if len(found) == 0 {
		return nil, errors.New("no certificate")
	}
	return found, nil
}

func sortedIdentities[V any](of map[identity]V) []identity {
	return slices.SortedFunc(maps.Keys(of), func(a, b identity) int { return strings.Compare(a.String(), b.String()) })
}
