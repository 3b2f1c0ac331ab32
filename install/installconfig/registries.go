// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
)

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
