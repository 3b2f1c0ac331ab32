// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
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

// Proxy is the cluster-wide proxy.
type Proxy struct {
	HTTPProxy  string `json:"httpProxy"`
	HTTPSProxy string `json:"httpsProxy"`
	NoProxy    string `json:"noProxy"`
}

func (r *reader) proxy(p *Proxy) {
	if p == nil {
		return
	}
	if p.HTTPProxy == "" && p.HTTPSProxy == "" {
		r.required("proxy", "set httpProxy or httpsProxy, or remove it")
	}
	r.proxyURL("proxy.httpProxy", p.HTTPProxy, "http")
	r.proxyURL("proxy.httpsProxy", p.HTTPSProxy, "http", "https")
	if p.NoProxy == "" || p.NoProxy == "*" {
		return
	}
	const at = "proxy.noProxy"
	for _, entry := range strings.Split(p.NoProxy, ",") {
		entry = strings.TrimSpace(entry)
		_, notCIDR := netip.ParsePrefix(entry)
		address, notAddress := netip.ParseAddr(entry)
		switch {
		case entry == "":
			r.invalid(at, entry, "there is an empty entry; remove a comma")
		case entry == "*":
			r.invalid(at, entry, "there are other entries too; write * alone, or remove it")
		case notAddress == nil && address.Is6():
			r.invalid(at, entry, "an IPv6 address is given as a network; write "+entry+"/128")
		case notCIDR != nil && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(entry, "."))) > 0:
			r.invalid(at, entry, "write domains, addresses and CIDRs, separated by commas")
		}
	}
}

// proxyURL has the rule of the cluster-network-operator, which refuses the whole Proxy for one wrong field (U-INS-33).
func (r *reader) proxyURL(at, value string, schemes ...string) {
	if value == "" {
		return
	}
	const advice = "; write http://HOST:PORT"
	u, err := url.Parse(value)
	if err != nil {
		r.secret(at, "it is not a URL"+advice)
		return
	}
	_, notAddress := netip.ParseAddr(u.Hostname())
	switch {
	case !slices.Contains(schemes, u.Scheme):
		r.secret(at, "it is not an "+strings.Join(schemes, " or ")+" URL"+advice)
	case notAddress != nil && len(validation.IsDNS1123Subdomain(u.Hostname())) > 0:
		r.secret(at, "the host is neither a DNS name nor an address"+advice)
	case !isPort(u.Port()):
		r.secret(at, "the port is not between 1 and 65535"+advice)
	}
}

func isPort(text string) bool {
	number, err := strconv.Atoi(cmp.Or(text, "1"))
	return err == nil && len(validation.IsValidPortNum(number)) == 0
}

// ImageSource is a repository and its mirrors.
type ImageSource struct {
	Source       string                      `json:"source"`
	Mirrors      []string                    `json:"mirrors"`
	SourcePolicy configv1.MirrorSourcePolicy `json:"sourcePolicy"`
}

func (r *reader) mirrors(c *Config, f *installConfig) {
	name := "imageDigestSources"
	c.ImageDigestSources = f.ImageDigestSources
	if len(f.ImageContentSources) > 0 {
		if len(f.ImageDigestSources) > 0 {
			r.forbidden("imageContentSources", "there are imageDigestSources too; keep those")
		}
		c.ImageDigestSources, name = f.ImageContentSources, "imageContentSources"
	}
	for i, s := range c.ImageDigestSources {
		at := document.Path("%s[%d]", name, i).String()
		r.repository(at+".source", s.Source)
		for j, mirror := range s.Mirrors {
			r.repository(document.Path("%s.mirrors[%d]", at, j).String(), mirror)
			if slices.Contains(s.Mirrors[:j], mirror) {
				r.add(field.Duplicate(document.Path("%s.mirrors[%d]", at, j), mirror))
			}
		}
		r.oneOf(at+".sourcePolicy", string(s.SourcePolicy), string(configv1.NeverContactSource), string(configv1.AllowContactingSource))
	}
}

// repositoryName is the pattern of mirrors in ImageDigestMirrorSet of openshift/api (U-INS-33). That of sources has
// *.DOMAIN too, which openshift-install refuses.
var repositoryName = regexp.MustCompile(`^((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(?::[0-9]+)?)` +
	`(?:(?:/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$`)

func (r *reader) repository(at, value string) {
	advice := "write REGISTRY/REPOSITORY in lower case, without tag or digest"
	if strings.Contains(value, "://") {
		advice = "write REGISTRY/REPOSITORY without a scheme"
	}
	host, _, _ := strings.Cut(value, "/")
	_, port, _ := strings.Cut(host, ":")
	if !repositoryName.MatchString(value) || !isPort(port) {
		r.invalid(at, value, advice)
	}
}
