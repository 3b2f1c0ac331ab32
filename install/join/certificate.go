// SPDX-License-Identifier: Apache-2.0

package join

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Certificates of the kubelet, each with its key, relative to the root.
const (
	ClientCertificate  = "var/lib/kubelet/pki/kubelet-client-current.pem"
	ServingCertificate = "var/lib/kubelet/pki/kubelet-server-current.pem"
)

// clockStep is how far a time server may set a clock back without harm.
const clockStep = 10 * time.Minute

type held struct {
	// missing is why there is no valid certificate; "" if there is one.
	missing string
	// ended is when the certificate ended; zero if it is valid or missing.
	ended time.Time
}

// certificate reads the kubelet's file, since the cluster deletes requests an hour after their approval.
func (o Options) certificate(use, name string) (held, error) {
	path := filepath.Join(o.Root, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return held{missing: "the kubelet has no " + use + " certificate (" + path + ")"}, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("read the kubelet's certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return held{}, fmt.Errorf("%s: %w", path, err)
		case certificate.Subject.CommonName != "system:node:"+o.Name:
			return held{missing: fmt.Sprintf("%s is the certificate of %q", path, certificate.Subject.CommonName)}, nil
		case o.Now().Add(clockStep).Before(certificate.NotBefore):
			return held{missing: fmt.Sprintf("%s is not valid before %s, since the clock was ahead; remove it and restart the kubelet", path, certificate.NotBefore)}, nil
		case !o.Now().Before(certificate.NotAfter):
			return held{missing: fmt.Sprintf("%s has ended at %s", path, certificate.NotAfter), ended: certificate.NotAfter}, nil
		}
		return held{}, nil
	}
	return held{missing: path + " has no certificate"}, nil
}
