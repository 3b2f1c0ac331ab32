// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
)

func (r *reader) pullSecret(text string) {
	const advice = "; get it from the provider of the release images"
	var secret struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	switch err := json.Unmarshal([]byte(text), &secret); {
	case text == "" && r.Purpose == AllInOne:
		// Images of Kubernetes are public, or on the node.
	case text == "":
		r.required("pullSecret", "without it no release image can be pulled"+advice)
	case err != nil:
		r.secret("pullSecret", "it is not JSON"+advice)
	case len(secret.Auths) == 0:
		r.secret("pullSecret", "it has no auths"+advice)
	}
	for registry, entry := range secret.Auths {
		if decoded, err := base64.StdEncoding.DecodeString(entry.Auth); err != nil || !strings.Contains(string(decoded), ":") {
			r.secret("pullSecret", "the auth of "+registry+" is not USER:PASSWORD in base64"+advice)
		}
	}
}

// keyOption matches the options of a line of authorized_keys, as in sshd(8).
var keyOption = regexp.MustCompile(`(?i)^(((no-)?(agent-forwarding|port-forwarding|pty|user-rc|x11-forwarding|touch-required))|cert-authority|restrict|` +
	`verify-required|(command|environment|expiry-time|from|permitlisten|permitopen|principals|tunnel)=".*")$`)

func (r *reader) sshKeys(text string) []string {
	var keys []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		_, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			r.secret("sshKey", fmt.Sprintf("a line is not a public key: %v; write public keys, one on each line", err))
		}
		for _, option := range options {
			if !keyOption.MatchString(option) {
				r.invalid("sshKey", option, "it is not an option before a key: sshd ignores the line; remove it")
			}
		}
		keys = append(keys, line)
	}
	return keys
}

// TrustBundlePolicy decides whether the additional trust bundle is used without a proxy.
type TrustBundlePolicy string

// Policies; the first is the default.
const (
	TrustBundleProxyOnly TrustBundlePolicy = "Proxyonly"
	TrustBundleAlways    TrustBundlePolicy = "Always"
)

func (r *reader) trust(c *Config, f *installConfig) {
	r.oneOf("additionalTrustBundlePolicy", string(f.AdditionalTrustBundlePolicy), string(TrustBundleProxyOnly), string(TrustBundleAlways))
	c.AdditionalTrustBundle, c.AdditionalTrustBundlePolicy = f.AdditionalTrustBundle, TrustBundleProxyOnly
	if f.AdditionalTrustBundlePolicy != "" {
		c.AdditionalTrustBundlePolicy = f.AdditionalTrustBundlePolicy
	}
	rest := []byte(strings.TrimSpace(f.AdditionalTrustBundle))
	for n := 1; len(rest) > 0; n++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil || block.Type != "CERTIFICATE" {
			// It may be a key, so it is not printed.
			r.secret("additionalTrustBundle", fmt.Sprintf("part %d is not a certificate in PEM; write certificates, and nothing else", n))
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			r.secret("additionalTrustBundle", fmt.Sprintf("certificate %d: %v", n, err))
		}
	}
}
