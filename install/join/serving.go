package join

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Where a kubelet keeps its certificates with their keys, relative to the root.
const (
	ClientCertificate  = "var/lib/kubelet/pki/kubelet-client-current.pem"
	ServingCertificate = "var/lib/kubelet/pki/kubelet-server-current.pem"
)

// serving returns what is missing of the serving certificate. It reads the file and not the request, which the cluster
// deletes an hour after it was approved.
func (o Options) serving() (missing string, err error) {
	path := filepath.Join(o.Root, ServingCertificate)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "the kubelet has no serving certificate (" + path + ")", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the kubelet's serving certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", path, err)
		case certificate.Subject.CommonName != "system:node:"+o.Name:
			return fmt.Sprintf("%s is the certificate of %q", path, certificate.Subject.CommonName), nil
		case !o.Now().Before(certificate.NotAfter):
			return fmt.Sprintf("%s has ended at %s", path, certificate.NotAfter), nil
		}
		return "", nil
	}
	return path + " has no certificate", nil
}
