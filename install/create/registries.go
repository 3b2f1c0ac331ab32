// SPDX-License-Identifier: Apache-2.0

package create

import (
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/render/files"

	"github.com/solonode/sno/install/installconfig"
)

const (
	registriesPath = "etc/containers/registries.conf.d/50-sno-install-mirrors.conf"
	trustPath      = "etc/pki/ca-trust/source/anchors/sno-install.crt"
	proxyPath      = "etc/systemd/system.conf.d/10-sno-install-proxy.conf"
)

// registries returns the drop-in of containers-registries.conf(5) with mirrors for pulls by digest. It is needed until
// the machine-config operator writes its own.
func registries(sources []installconfig.ImageSource) []files.File {
	if len(sources) == 0 {
		return nil
	}
	var text strings.Builder
	for _, source := range sources {
		fmt.Fprintf(&text, "[[registry]]\nprefix = %q\nlocation = %q\n", source.Source, source.Source)
		if source.SourcePolicy == configv1.NeverContactSource {
			text.WriteString("blocked = true\n")
		}
		for _, mirror := range source.Mirrors {
			fmt.Fprintf(&text, "[[registry.mirror]]\nlocation = %q\npull-from-mirror = \"digest-only\"\n", mirror)
		}
	}
	return []files.File{{Path: registriesPath, Mode: 0o644, Content: []byte(text.String())}}
}

// proxy returns the proxy settings of all units. They may have a password.
func proxy(p *installconfig.Proxy, noProxy string) []files.File {
	if p == nil {
		return nil
	}
	var values []string
	for _, v := range []struct{ name, value string }{{"HTTP_PROXY", p.HTTPProxy}, {"HTTPS_PROXY", p.HTTPSProxy}, {"NO_PROXY", noProxy}} {
		if v.value != "" {
			// A percent sign begins a specifier of systemd.
			value := strings.ReplaceAll(v.value, "%", "%%")
			values = append(values, fmt.Sprintf("%q", v.name+"="+value), fmt.Sprintf("%q", strings.ToLower(v.name)+"="+value))
		}
	}
	text := "[Manager]\nDefaultEnvironment=" + strings.Join(values, " ") + "\n"
	return []files.File{{Path: proxyPath, Mode: 0o600, Content: []byte(text)}}
}

// trust returns the additional CA certificates of the system. A unit of the image reads them at the first boot.
func trust(c *installconfig.Config) []files.File {
	if c.AdditionalTrustBundle == "" {
		return nil
	}
	return []files.File{{Path: trustPath, Mode: 0o644, Content: []byte(c.AdditionalTrustBundle)}}
}
