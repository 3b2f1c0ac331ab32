// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
)

// ErrUntrusted is in the error of a master config whose server nothing proves.
var ErrUntrusted = errors.New("nothing proves where the master config is from")

// Sum512 matches a SHA-512 sum as sha512sum prints it.
var Sum512 = regexp.MustCompile(`^[0-9a-f]{128}$`)

// TrustsMasterConfig returns an ErrUntrusted for a URL from which anybody on the way could answer with a config of his
// own, which runs as root: plain http to another machine without a sum of the content.
func (s *Settings) TrustsMasterConfig(from *url.URL) error {
	local := from.Hostname() == "localhost"
	if address, err := netip.ParseAddr(from.Hostname()); err == nil {
		local = address.IsLoopback()
	}
	if from.Scheme == "https" || local || s.MasterIgnitionSHA512 != "" {
		return nil
	}
	return fmt.Errorf("%w: %s: use https, or give the SHA-512 sum or a file", ErrUntrusted, from.Redacted())
}

// MasterConfigRoots returns the authorities of the server of the master config; nil for those of the system.
func (s *Settings) MasterConfigRoots() (*x509.CertPool, error) {
	if s.MasterIgnitionCA == "" {
		return nil, nil //nolint:nilnil // nil means the system's
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(s.MasterIgnitionCA)) {
		return nil, fmt.Errorf("%w: masterIgnitionCA has no certificate", ErrSettings)
	}
	return roots, nil
}
