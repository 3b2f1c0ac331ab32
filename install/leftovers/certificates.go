// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/solonode/sno/install/node"
)

const (
	kubeletDir = "var/lib/kubelet"
	largest    = 1 << 20
)

// signers matches the names of the installation's CAs: upstream's, and library-go's NAMESPACE_NAME@SECONDS (U-INS-29).
var signers = regexp.MustCompile(`^(?:.*_)?(?:kubelet-bootstrap-kubeconfig-signer|admin-kubeconfig-signer)(?:@\d+)?$`)

// kept are not searched: files that operators write and renew, volumes of pods, and the kubeconfig with which a kubelet
// requests a certificate again after its own has ended.
var kept = []string{node.ResourceDir, kubeletDir + "/pods", kubeletDir + "/plugins", node.KubeletBootstrap}

// certificates adds certificates by the installation's CAs in PEM files and kubeconfigs. The CAs themselves may remain
// in bundles.
func (c *check) certificates() error {
	var errs []error
	for _, dir := range []string{kubernetesDir, kubeletDir} {
		errs = append(errs, filepath.WalkDir(c.path(dir), func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			name, err := filepath.Rel(c.root, file)
			if err != nil {
				return err //nolint:wrapcheck // it names both paths
			}
			switch {
			case entry.IsDir() && (slices.Contains(kept, name) || strings.HasPrefix(name, kubernetesDir+"/"+bootstrapPrefix)):
				return fs.SkipDir
			case entry.Type().IsRegular() && !slices.Contains(kept, name):
				return c.certificatesOf(name, entry)
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

func (c *check) certificatesOf(name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err == nil && info.Size() > largest {
		return nil
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(c.path(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the kubelet replaces its files
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	for _, found := range parse(text) {
		if !found.IsCA && signers.MatchString(found.Issuer.CommonName) {
			c.add(Certificate, name, fmt.Sprintf("certificate of %s by %s", found.Subject.CommonName, found.Issuer.CommonName))
		}
	}
	return nil
}

// parse returns the certificates in PEM and in a kubeconfig. Invalid ones are ignored.
func parse(text []byte) []*x509.Certificate {
	if bytes.Contains(text, []byte("client-certificate-data")) {
		if config, err := clientcmd.Load(text); err == nil {
			for _, user := range config.AuthInfos {
				text = slices.Concat(text, []byte("\n"), user.ClientCertificateData)
			}
		}
	}
	var list []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if found, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			list = append(list, found)
		}
	}
	return list
}
