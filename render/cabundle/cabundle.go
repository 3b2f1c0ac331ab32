// SPDX-License-Identifier: Apache-2.0

// Package cabundle merges bundles of CA certificates.
package cabundle

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/cert"
)

// ErrEmpty is returned if no bundle has a certificate: with an empty bundle no client is trusted.
var ErrEmpty = errors.New("no certificate in any bundle")

// Union returns the certificates of the bundles as PEM, each once, in order. Empty bundles are skipped.
func Union(bundles ...string) (string, error) {
	return union(func(*x509.Certificate) bool { return true }, bundles)
}

// UnionUnexpired is Union without expired certificates.
func UnionUnexpired(now time.Time, bundles ...string) (string, error) {
	return union(func(c *x509.Certificate) bool { return now.Before(c.NotAfter) }, bundles)
}

func union(keep func(*x509.Certificate) bool, bundles []string) (string, error) {
	var pem bytes.Buffer
	seen := map[string]bool{}
	for i, bundle := range bundles {
		if bundle == "" {
			continue
		}
		certificates, err := cert.ParseCertsPEM([]byte(bundle))
		if err != nil {
			return "", fmt.Errorf("read bundle %d of %d: %w", i+1, len(bundles), err)
		}
		for _, c := range certificates {
			if seen[string(c.Raw)] || !keep(c) {
				continue
			}
			seen[string(c.Raw)] = true
			encoded, err := cert.EncodeCertificates(c)
			if err != nil {
				return "", err
			}
			pem.Write(encoded)
		}
	}
	if pem.Len() == 0 {
		return "", ErrEmpty
	}
	return pem.String(), nil
}

// FirstCertificate returns the first certificate of a chain as PEM: the controller that signs requests takes only one.
func FirstCertificate(chain []byte) ([]byte, error) {
	certificates, err := cert.ParseCertsPEM(chain)
	if err != nil {
		return nil, fmt.Errorf("read the chain: %w", err)
	}
	return cert.EncodeCertificates(certificates[0])
}
