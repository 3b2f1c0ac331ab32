// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"

	"github.com/solonode/sno/install/internal/fixture"
)

const file = "testdata/install-config.yaml"

func base(t testing.TB) string {
	t.Helper()
	return string(fixture.Must(os.ReadFile(file)))
}

func changed(t *testing.T, old, replacement string) string {
	t.Helper()
	text := base(t)
	if !strings.Contains(text, old) {
		t.Fatalf("the base has no %q", old)
	}
	return strings.Replace(text, old, replacement, 1)
}

func ptr[T any](v T) *T { return &v }

func TestRead(t *testing.T) {
	c, warnings, err := Read(file, []byte(base(t)), Options{Purpose: SingleNode})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if strings.Contains(string(c.Raw), "auths") || !strings.Contains(string(c.Raw), `pullSecret: ""`) || !strings.Contains(string(c.Raw), "installationDisk: /dev/disk") {
		t.Errorf("raw config: %s", c.Raw)
	}
	key := c.SSHKeys
	c.Raw, c.SSHKeys = nil, nil
	if len(key) != 1 || !strings.HasPrefix(key[0], "ssh-ed25519 ") {
		t.Errorf("SSH keys: %v", key)
	}
	want := &Config{
		Name: "sno", BaseDomain: "example.com", Platform: configv1.NonePlatformType,
		Networking: Networking{
			NetworkType: "OVNKubernetes", MachineNetwork: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
			ClusterNetwork: []ClusterNetwork{{netip.MustParsePrefix("10.128.0.0/14"), 23}}, ServiceNetwork: []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16")},
		},
		ControlPlane:     &Pool{Name: "master", Replicas: ptr(int64(1)), Hyperthreading: "Enabled"},
		Compute:          []Pool{{Name: "worker", Replicas: ptr(int64(0))}},
		BootstrapInPlace: &BootstrapInPlace{InstallationDisk: "/dev/disk/by-id/wwn-0x5000c500a0b1c2d3"},
		PullSecret:       `{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}`,
		Proxy:            &Proxy{HTTPSProxy: "http://proxy.example.com:3128", NoProxy: ".example.org,198.51.100.0/24"},
		ImageDigestSources: []ImageSource{{
			Source: "registry.example.com/release", Mirrors: []string{"mirror.example.com:5000/release"}, SourcePolicy: configv1.NeverContactSource,
		}},
		AdditionalTrustBundlePolicy: TrustBundleProxyOnly, CPUPartitioning: configv1.CPUPartitioningNone,
	}
	fixture.Equal(t, "", want, c, cmpopts.EquateComparable(netip.Prefix{}))
	if c.Domain() != "sno.example.com" {
		t.Errorf("domain %s", c.Domain())
	}
}

const smallest = "apiVersion: v1\nmetadata: {name: sno}\nbaseDomain: example.com.\ncontrolPlane: {replicas: 1}\ncompute: [{replicas: 0}]\nplatform: {none: {}}\n"

func TestDefaults(t *testing.T) {
	c, _, err := Read(file, []byte(smallest), Options{Purpose: AllInOne})
	fixture.NoError(t, err)
	n := c.Networking
	if n.NetworkType != "OVNKubernetes" || n.MachineNetwork[0].String() != "10.0.0.0/16" || n.ServiceNetwork[0].String() != "172.30.0.0/16" ||
		n.ClusterNetwork[0].CIDR.String() != "10.128.0.0/14" || n.ClusterNetwork[0].HostPrefix != 23 {
		t.Errorf("networks: %+v", n)
	}
	if c.Domain() != "sno.example.com" {
		t.Errorf("domain: %s", c.Domain())
	}
	// The operators get the defaults too.
	again, _, err := Read(file, c.Raw, Options{Purpose: AllInOne})
	if err != nil || !strings.Contains(string(c.Raw), "- cidr: 10.0.0.0/16") || !strings.Contains(string(c.Raw), "hostPrefix: 23") {
		t.Errorf("%v: the file for operators lacks default networks:\n%s", err, c.Raw)
	} else if diff := cmp.Diff(n, again.Networking, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("networks of the file for operators (-want +got):\n%s", diff)
	}
	six := smallest + "networking: {machineNetwork: [{cidr: 2001:db8::/64}], clusterNetwork: [{cidr: fd01::/48}], serviceNetwork: [fd02::/112]}\n"
	if c, _, err = Read(file, []byte(six), Options{Purpose: AllInOne}); err != nil || c.Networking.ClusterNetwork[0].HostPrefix != 64 {
		t.Errorf("IPv6: %v, %+v", err, c)
	}
}

// Each error has line, field and advice (R-BIP-27, R-AIO-1).
func TestInvalid(t *testing.T) {
	for name, test := range map[string]struct {
		old, replacement string
		purpose          Purpose
		kind             field.ErrorType
		want             string
	}{
		"no control plane":        {"controlPlane:\n  name: master\n  replicas: 1\n  hyperthreading: Enabled\n", "", SingleNode, field.ErrorTypeRequired, ":1: controlPlane.replicas: Required value: write 1: without it there are 3 control-plane nodes"},
		"nil replicas":            {"  replicas: 1\n", "", SingleNode, field.ErrorTypeRequired, ":6: controlPlane.replicas: Required value: write 1: without it there are 3 control-plane nodes"},
		"null replicas":           {"replicas: 1\n", "replicas: null\n", SingleNode, field.ErrorTypeRequired, ":8: controlPlane.replicas: Required value: write 1: without it there are 3 control-plane nodes"},
		"two replicas":            {"replicas: 1\n", "replicas: 2\n", SingleNode, field.ErrorTypeInvalid, ":8: controlPlane.replicas: Invalid value: 2: a single node has one control-plane replica; write 1, or use openshift-install"},
		"no replica":              {"replicas: 1\n", "replicas: 0\n", AllInOne, field.ErrorTypeInvalid, ":8: controlPlane.replicas: Invalid value: 0: a single node has one control-plane replica; write 1, or use openshift-install"},
		"replicas as text":        {"replicas: 1\n", "replicas: one\n", SingleNode, field.ErrorTypeTypeInvalid, ":8: controlPlane.replicas: Invalid value: write a number"},
		"no compute":              {"compute:\n- name: worker\n  replicas: 0\n", "", SingleNode, field.ErrorTypeRequired, ":1: compute: Required value: without it there are three workers; write replicas: 0, or the number of workers at the installation"},
		"no compute replicas":     {"  replicas: 0\n", "", SingleNode, field.ErrorTypeRequired, ":11: compute[0].replicas: Required value: write 0, or the number of workers at the installation: without it there are 3"},
		"negative workers":        {"replicas: 0\n", "replicas: -1\n", SingleNode, field.ErrorTypeInvalid, ":12: compute[0].replicas: Invalid value: -1: write 0 or more"},
		"all-in-one with workers": {"replicas: 0\n", "replicas: 2\n", AllInOne, field.ErrorTypeInvalid, ":12: compute[0].replicas: Invalid value: 2: an all-in-one node has no workers; write 0"},
		"no pull secret":          {`pullSecret: '{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}'`, "", SingleNode, field.ErrorTypeRequired, ":1: pullSecret: Required value: without it no release image can be pulled; get it from the provider of the release images"},
		"pull secret":             {`'{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}'`, "x", SingleNode, field.ErrorTypeInvalid, ":34: pullSecret: Invalid value: it is not JSON; get it from the provider of the release images"},
		"empty pull secret":       {`{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}`, "{}", SingleNode, field.ErrorTypeInvalid, ":34: pullSecret: Invalid value: it has no auths; get it from the provider of the release images"},
		"pull secret's auth":      {"dXNlcjpwYXNz", "dXNlcg==", SingleNode, field.ErrorTypeInvalid, ":34: pullSecret: Invalid value: the auth of registry.example.com is not USER:PASSWORD in base64; get it from the provider of the release images"},
		"no disk":                 {"bootstrapInPlace:\n  installationDisk: /dev/disk/by-id/wwn-0x5000c500a0b1c2d3\n", "", SingleNode, field.ErrorTypeRequired, ":1: bootstrapInPlace.installationDisk: Required value: name the disk to install to, best by /dev/disk/by-id/..."},
		"empty disk":              {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", `""`, SingleNode, field.ErrorTypeRequired, ":25: bootstrapInPlace.installationDisk: Required value: name the disk to install to, best by /dev/disk/by-id/..."},
		"disk without a path":     {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "sda", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "sda": it is not the path of a device; name one device, best by /dev/disk/by-id/...`},
		"file for a disk":         {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/../etc", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/../etc": it is not the path of a device; name one device, best by /dev/disk/by-id/...`},
		"cloud":                   {"none: {}", "aws: {region: x}", SingleNode, field.ErrorTypeForbidden, ":23: platform.aws: Forbidden: bootstrap in place and all-in-one are for machines, not for clouds; remove the field"},
		"no platform":             {"  none: {}\n", "  none: null\n", SingleNode, field.ErrorTypeRequired, `:22: platform: Required value: write "none: {}" below it`},
		"two platforms":           {"none: {}", "none: {}\n  external: {platformName: x}", SingleNode, field.ErrorTypeInvalid, `:22: platform: Invalid value: "none, external": there are two platforms; keep one`},
		"other network":           {"networkType: OVNKubernetes", "networkType: OpenShiftSDN", SingleNode, field.ErrorTypeNotSupported, `:14: networking.networkType: Unsupported value: "OpenShiftSDN": supported values: "OVNKubernetes"`},
		"no network":              {"cidr: 192.0.2.0/24", "cidr: 192.0.2.0", SingleNode, field.ErrorTypeInvalid, `:16: networking.machineNetwork[0].cidr: Invalid value: "192.0.2.0": write a network, such as 192.0.2.0/24 or fd01::/48`},
		"host bits":               {"cidr: 192.0.2.0/24", "cidr: 192.0.2.7/24", SingleNode, field.ErrorTypeInvalid, "write 192.0.2.0/24"},
		"overlap":                 {"cidr: 192.0.2.0/24", "cidr: 172.30.4.0/24", SingleNode, field.ErrorTypeInvalid, `:21: networking.serviceNetwork[0]: Invalid value: "172.30.0.0/16": it overlaps 172.30.4.0/24 of networking.machineNetwork[0].cidr; choose networks that do not overlap;`},
		"overlap with a default":  {"  machineNetwork:\n  - cidr: 192.0.2.0/24\n  clusterNetwork:\n  - cidr: 10.128.0.0/14", "  clusterNetwork:\n  - cidr: 10.0.0.0/14", SingleNode, field.ErrorTypeInvalid, `:16: networking.clusterNetwork[0].cidr: Invalid value: "10.0.0.0/14": it overlaps 10.0.0.0/16 of networking.machineNetwork; choose networks that do not overlap; those`},
		"host prefix":             {"hostPrefix: 23", "hostPrefix: 13", SingleNode, field.ErrorTypeInvalid, ":19: networking.clusterNetwork[0].hostPrefix: Invalid value: 13: it does not fit into 10.128.0.0/14, or has no address for pods; write a number from 14 to 30"},
		"families":                {"  - 172.30.0.0/16", "  - fd02::/112", SingleNode, field.ErrorTypeInvalid, ":17: networking.clusterNetwork: Invalid value: pods and services have different address families; give each a network of the same families, or none"},
		"family of machines":      {"cidr: 192.0.2.0/24", "cidr: 2001:db8::/64", SingleNode, field.ErrorTypeInvalid, "networking.machineNetwork: Invalid value: the machine has no address of a family that services have"},
		"old network field":       {"  networkType: OVNKubernetes", "  machineCIDR: 192.0.2.0/24", SingleNode, field.ErrorTypeForbidden, ":14: networking.machineCIDR: Forbidden: deprecated for a long time; use machineNetwork; remove the field"},
		"name":                    {"name: sno", "name: Sno_1", SingleNode, field.ErrorTypeInvalid, `:3: metadata.name: Invalid value: "Sno_1": it is a part of DNS names, such as sno-1`},
		"no name":                 {"  name: sno\n", "", SingleNode, field.ErrorTypeRequired, ":2: metadata.name: Required value: set the cluster's name"},
		"domain":                  {"baseDomain: example.com", "baseDomain: example..com", SingleNode, field.ErrorTypeInvalid, `:5: baseDomain: Invalid value: "example..com": set a domain, such as example.com`},
		"no domain":               {"baseDomain: example.com\n", "", SingleNode, field.ErrorTypeRequired, ":1: baseDomain: Required value: set the parent of the cluster's domain, such as example.com"},
		"version":                 {"apiVersion: v1", "apiVersion: v2", SingleNode, field.ErrorTypeInvalid, `:1: apiVersion: Invalid value: "v2": write "apiVersion: v1"`},
		"unknown field":           {"baseDomain:", "speed: 3\nbaseDomain:", SingleNode, field.ErrorTypeForbidden, ":5: speed: Forbidden: unknown field; see docs/install-fields.md for all fields"},
		"unknown field below":     {"    hostPrefix: 23", "    hostPrefix: 23\n    hostprefix: 24", SingleNode, field.ErrorTypeForbidden, ":20: networking.clusterNetwork[0].hostprefix: Forbidden: unknown field; did you mean hostPrefix?"},
		"misspelled proxy":        {"  httpsProxy: ", "  htpProxy: x\n  httpsProxy: ", SingleNode, field.ErrorTypeForbidden, ":32: proxy.htpProxy: Forbidden: unknown field; see docs/install-fields.md for all fields"},
		"field of platform none":  {"none: {}", "none: {region: x}", SingleNode, field.ErrorTypeForbidden, ":23: platform.none.region: Forbidden: unknown field; see docs/install-fields.md for all fields"},
		"field of another one":    {"none: {}", "external: {platformName: x, region: x}", SingleNode, field.ErrorTypeForbidden, ":23: platform.external.region: Forbidden: unknown field; see docs/install-fields.md for all fields"},
		"key twice":               {"baseDomain: example.com", "baseDomain: example.com\nbaseDomain: example.org", SingleNode, field.ErrorTypeDuplicate, ":6: baseDomain: Duplicate value: the field is set twice; remove one of them"},
		"second document":         {"sshKey: |", "---\nsshKey: |", SingleNode, field.ErrorTypeTooMany, ":36: Too many: there is a second document; remove it"},
		"SSH key":                 {"ssh-ed25519 AAAA", "ssh-ed25519 AA!A", SingleNode, field.ErrorTypeInvalid, ":35: sshKey: Invalid value: a line is not a public key: ssh: no key found; last parsing error for ignored line: illegal base64 data at input byte 4; write public keys,"},
		"trust bundle":            {"sshKey: |", "additionalTrustBundle: hello\nsshKey: |", SingleNode, field.ErrorTypeInvalid, ":35: additionalTrustBundle: Invalid value: part 1 is not a certificate in PEM; write certificates, and nothing else"},
		"trust bundle's content":  {"sshKey: |", "additionalTrustBundle: |\n  -----BEGIN CERTIFICATE-----\n  AAAA\n  -----END CERTIFICATE-----\nsshKey: |", SingleNode, field.ErrorTypeInvalid, ":35: additionalTrustBundle: Invalid value: certificate 1: x509: malformed certificate"},
		"trust policy":            {"sshKey: |", "additionalTrustBundlePolicy: Never\nsshKey: |", SingleNode, field.ErrorTypeNotSupported, `:35: additionalTrustBundlePolicy: Unsupported value: "Never": supported values: "Always", "Proxyonly"`},
		"proxy":                   {"http://proxy.example.com:3128", "user:secret@proxy", SingleNode, field.ErrorTypeInvalid, ":32: proxy.httpsProxy: Invalid value: it is not an http or https URL; write http://HOST:PORT"},
		"no proxy":                {"  httpsProxy: http://proxy.example.com:3128\n", "", SingleNode, field.ErrorTypeRequired, ":31: proxy: Required value: set httpProxy or httpsProxy, or remove it"},
		"noProxy":                 {".example.org,", "exa mple,", SingleNode, field.ErrorTypeInvalid, `:33: proxy.noProxy: Invalid value: "exa mple": write domains, addresses and CIDRs, separated by commas`},
		"mirror":                  {"mirror.example.com:5000/release", "https://mirror.example.com/release:4", SingleNode, field.ErrorTypeInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirrors twice":           {"sshKey: |", "imageContentSources: [{source: a.example.com/b}]\nsshKey: |", SingleNode, field.ErrorTypeForbidden, ":35: imageContentSources: Forbidden: there are imageDigestSources too; keep those"},
		"mirror's space":          {"mirror.example.com:5000/release", `"mirror.example.com:5000/a b"`, SingleNode, field.ErrorTypeInvalid, `:29: imageDigestSources[0].mirrors[0]: Invalid value: "mirror.example.com:5000/a b": write REGISTRY/REPOSITORY in lower case, without tag or digest`},
		"mirror's scheme":         {"mirror.example.com:5000/release", "https://mirror.example.com/release", SingleNode, field.ErrorTypeInvalid, `:29: imageDigestSources[0].mirrors[0]: Invalid value: "https://mirror.example.com/release": write REGISTRY/REPOSITORY without a scheme`},
		"mirror's case":           {"mirror.example.com:5000/release", "mirror.example.com:5000/Release", SingleNode, field.ErrorTypeInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirror's slash":          {"mirror.example.com:5000/release", "mirror.example.com:5000/release/", SingleNode, field.ErrorTypeInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirror's port":           {"mirror.example.com:5000/release", "mirror.example.com:65536/release", SingleNode, field.ErrorTypeInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirror twice":            {"  - mirror.example.com:5000/release\n", "  - mirror.example.com:5000/release\n  - mirror.example.com:5000/release\n", SingleNode, field.ErrorTypeDuplicate, "imageDigestSources[0].mirrors[1]: "},
		"source's scheme":         {"source: registry.example.com/release", "source: http://registry.example.com/release", SingleNode, field.ErrorTypeInvalid, "imageDigestSources[0].source: "},
		"source's case":           {"source: registry.example.com/release", "source: registry.example.com/Release", SingleNode, field.ErrorTypeInvalid, "imageDigestSources[0].source: "},
		"join network":            {"cidr: 192.0.2.0/24", "cidr: 100.64.10.0/24", SingleNode, field.ErrorTypeInvalid, `:16: networking.machineNetwork[0].cidr: Invalid value: "100.64.10.0/24": it overlaps 100.64.0.0/16 of OVN-Kubernetes' own join network; choose networks that do not`},
		"transit network":         {"172.30.0.0/16", "100.88.0.0/17", SingleNode, field.ErrorTypeInvalid, "of OVN-Kubernetes' own transit switch network"},
		"masquerade network":      {"cidr: 10.128.0.0/14", "cidr: 169.254.0.0/18", SingleNode, field.ErrorTypeInvalid, `:18: networking.clusterNetwork[0].cidr: Invalid value: "169.254.0.0/18": it overlaps 169.254.0.0/17 of OVN-Kubernetes' own masquerade network; choose networks that do`},
		"link-local machine":      {"cidr: 192.0.2.0/24", "cidr: 169.254.192.0/24", SingleNode, field.ErrorTypeInvalid, `:16: networking.machineNetwork[0].cidr: Invalid value: "169.254.192.0/24": it has loopback, link-local or multicast addresses of 169.254.128.0/17; choose a network of`},
		"loopback network":        {"cidr: 192.0.2.0/24", "cidr: 127.8.0.0/16", SingleNode, field.ErrorTypeInvalid, `:16: networking.machineNetwork[0].cidr: Invalid value: "127.8.0.0/16": it has loopback, link-local or multicast addresses of 127.0.0.0/8; choose a network of machines`},
		"multicast network":       {"172.30.0.0/16", "239.0.0.0/16", SingleNode, field.ErrorTypeInvalid, `:21: networking.serviceNetwork[0]: Invalid value: "239.0.0.0/16": it has loopback, link-local or multicast addresses of 224.0.0.0/4; choose a network of machines`},
		"small service network":   {"172.30.0.0/16", "172.30.0.0/29", SingleNode, field.ErrorTypeInvalid, `:21: networking.serviceNetwork[0]: Invalid value: "172.30.0.0/29": it has no tenth address, which is the cluster's DNS; choose a larger one, such as 172.30.0.0/16`},
		"disk with arguments":     {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/vda --copy-network", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/vda --copy-network": it has arguments of coreos-installer, which takes one device here; write the device`},
		"two disks":               {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sda,/dev/sdb", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/sda,/dev/sdb": it is not the path of a device; name one device, best by /dev/disk/by-id/...`},
		"two disks in a row":      {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sda /dev/sdb", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/sda /dev/sdb": it is not the path of a device; name one device, best by /dev/disk/by-id/...`},
		"disk's placeholder":      {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/<disk>", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/<disk>": it has a placeholder; name one device, best by /dev/disk/by-id/...`},
		"sdX":                     {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sdX", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/sdX": it has a placeholder; name one device, best by /dev/disk/by-id/...`},
		"folder of disks":         {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/disk/by-id", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/disk/by-id": it is a folder of devices; name one device, best by /dev/disk/by-id/...`},
		"disk with a slash":       {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sda/", SingleNode, field.ErrorTypeInvalid, `:25: bootstrapInPlace.installationDisk: Invalid value: "/dev/sda/": it is not the path of a device; name one device, best by /dev/disk/by-id/...`},
		"httpProxy by https":      {"  httpsProxy: http:", "  httpProxy: https:", SingleNode, field.ErrorTypeInvalid, ":32: proxy.httpProxy: Invalid value: it is not an http URL; write http://HOST:PORT"},
		"proxy's port":            {"proxy.example.com:3128", "proxy.example.com:70000", SingleNode, field.ErrorTypeInvalid, ":32: proxy.httpsProxy: Invalid value: the port is not between 1 and 65535; write http://HOST:PORT"},
		"proxy's host":            {"proxy.example.com:3128", "proxy_1.example.com:3128", SingleNode, field.ErrorTypeInvalid, ":32: proxy.httpsProxy: Invalid value: the host is neither a DNS name nor an address; write http://HOST:PORT"},
		"noProxy with a star":     {".example.org,", "'*,example.org'\n  # ", SingleNode, field.ErrorTypeInvalid, `:33: proxy.noProxy: Invalid value: "*": there are other entries too; write * alone, or remove it`},
		"noProxy, empty entry":    {".example.org,", ".example.org,,", SingleNode, field.ErrorTypeInvalid, `:33: proxy.noProxy: Invalid value: "": there is an empty entry; remove a comma`},
		"noProxy, IPv6":           {".example.org,", "fd00::1,", SingleNode, field.ErrorTypeInvalid, `:33: proxy.noProxy: Invalid value: "fd00::1": an IPv6 address is given as a network; write fd00::1/128`},
		"SSH key's option":        {"ssh-ed25519 AAAA", "- ssh-ed25519 AAAA", SingleNode, field.ErrorTypeInvalid, `:35: sshKey: Invalid value: "-": it is not an option before a key: sshd ignores the line; remove it`},
		"field's case":            {"bootstrapInPlace:\n", "bootstrapInPlace: {installationDisk: /dev/vda}\nBootstrapInPlace:\n", SingleNode, field.ErrorTypeForbidden, ":25: BootstrapInPlace: Forbidden: unknown field; did you mean bootstrapInPlace?"},
		"published inside":        {"sshKey: |", "publish: Internal\nsshKey: |", SingleNode, field.ErrorTypeNotSupported, `:35: publish: Unsupported value: "Internal": supported values: "External"`},
		"arbiter":                 {"sshKey: |", "arbiter: {replicas: 1}\nsshKey: |", SingleNode, field.ErrorTypeForbidden, ":35: arbiter: Forbidden: an arbiter is for clusters of two nodes; remove the field"},
		"FIPS without operator":   {"sshKey: |", "fips: true\nsshKey: |", AllInOne, field.ErrorTypeForbidden, ":35: fips: Forbidden: without a machine-config operator nothing enables FIPS mode on a node; boot an image that is in FIPS mode"},
		"capability":              {"sshKey: |", "capabilities: {additionalEnabledCapabilities: [Flying]}\nsshKey: |", SingleNode, field.ErrorTypeNotSupported, `:35: capabilities.additionalEnabledCapabilities[0]: Unsupported value: "Flying": supported values: "Build", "CSISnapshot", "CloudControllerManager", "CloudCredential",`},
		"custom gates":            {"sshKey: |", "featureSet: CustomNoUpgrade\nsshKey: |", SingleNode, field.ErrorTypeNotSupported, `:35: featureSet: Unsupported value: "CustomNoUpgrade": supported values: "DevPreviewNoUpgrade", "OKD", "TechPreviewNoUpgrade"`},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := Read(file, []byte(changed(t, test.old, test.replacement)), Options{Purpose: test.purpose})
			var faults document.Faults
			if !errors.As(err, &faults) || len(faults) != 1 || c != nil {
				t.Fatalf("%d errors, want 1: %v", len(faults), err)
			}
			if text := strings.TrimPrefix(err.Error(), file); faults[0].Problem.Type != test.kind || !strings.Contains(text, test.want) {
				t.Errorf("%s: %s, want %q", faults[0].Problem.Type, text, test.want)
			}
		})
	}
	for name, text := range map[string]string{"empty": "", "a list": "- a", "no YAML": "a: [", "a word": "hello"} {
		if _, _, err := Read(file, []byte(text), Options{}); err == nil || !strings.HasPrefix(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The renders of a release refuse networks by their first address.
func TestNetworksForDocuments(t *testing.T) {
	const six = "networking: {machineNetwork: [{cidr: %s}], clusterNetwork: [{cidr: fd01::/48}], serviceNetwork: [fd02::/112]}\n"
	const four = "networking: {machineNetwork: [{cidr: %s}]}\n"
	for name, test := range map[string]struct {
		section, network string
		refused          bool
	}{
		"IPv4":          {four, "192.0.2.0/24", true},
		"part of it":    {four, "192.0.2.128/25", true},
		"larger":        {four, "192.0.0.0/16", false},
		"another":       {four, "198.51.100.0/24", false},
		"IPv6":          {six, "2001:db8:7::/64", true},
		"another, IPv6": {six, "fd00::/64", false},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(smallest + fmt.Sprintf(test.section, test.network))
			_, _, err := Read(file, text, Options{Purpose: AllInOne, Release: true})
			if refused := err != nil && strings.Contains(err.Error(), ":7: networking.machineNetwork[0].cidr: Invalid value: "); refused != test.refused || !refused && err != nil {
				t.Errorf("error %v, want one: %v", err, test.refused)
			}
			if _, _, err := Read(file, text, Options{Purpose: AllInOne}); err != nil {
				t.Errorf("without a release: %v", err)
			}
		})
	}
}

func TestAllAtOnce(t *testing.T) {
	_, _, err := Read(file, []byte("controlPlane: {replicas: 3}\ncompute: []\nplatform: {gcp: {projectID: x}}\nspeed: 3\n"), Options{Purpose: SingleNode})
	var faults document.Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var fields []string
	for _, f := range faults {
		if f.Problem.Detail == "" || f.File != file {
			t.Errorf("no advice or file: %v", f)
		}
		fields = append(fields, f.Problem.Field)
	}
	want := []string{"apiVersion", "metadata.name", "baseDomain", "bootstrapInPlace.installationDisk", "pullSecret", "controlPlane.replicas", "compute", "platform.gcp", "speed"}
	fixture.Equal(t, "fields", want, fields, cmpopts.SortSlices(strings.Compare))
}

func TestWarnings(t *testing.T) {
	text := changed(t, "  creationTimestamp: null", "  labels: {a: b}")
	text = strings.Replace(text, "- name: worker", "- name: worker\n  hyperthreading: Disabled", 1)
	_, warnings, err := Read(file, []byte(text), Options{Purpose: SingleNode})
	fixture.NoError(t, err)
	want := []string{
		file + ":4: metadata.labels: without effect: only the name is used",
		file + ":12: compute[0].hyperthreading: without effect: the machine-config server configures workers",
	}
	fixture.Equal(t, "", want, warnings)
}

// What is accepted by openshift-install and the next consumer is accepted here.
func TestAccepted(t *testing.T) {
	for name, change := range map[string][2]string{
		"empty platform of a pool": {"controlPlane:\n", "operatorPublishingStrategy: {}\narbiter: {}\ncontrolPlane:\n  platform: {}\n"},
		"empty platform, workers":  {"- name: worker\n", "- name: worker\n  platform: {}\n"},
		"mirror without a path":    {"mirror.example.com:5000/release", "mirror.example.com:5000"},
		"star alone":               {".example.org,198.51.100.0/24", `"*"`},
		"SSH key's options":        {"ssh-ed25519 AAAA", `from="192.0.2.0/24",no-pty ssh-ed25519 AAAA`},
		"comment beside SSH keys":  {"  ssh-ed25519 AAAA", "  # of the administrator\n  ssh-ed25519 AAAA"},
		"disk by path":             {"wwn-0x5000c500a0b1c2d3", "../by-path/pci-0000:00:1f.2-ata-1"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(changed(t, change[0], change[1]), "by-id/../", "", 1)
			if _, warnings, err := Read(file, []byte(text), Options{Purpose: SingleNode}); err != nil || len(warnings) > 0 {
				t.Error(err, warnings)
			}
		})
	}
	_, _, err := Read(file, []byte(changed(t, "none: {}", "aws: {}")), Options{Purpose: SingleNode})
	fixture.Fails(t, "a platform is chosen by its name alone", err, "platform.aws: Forbidden")
}

// A manifest of the cluster network operator moves OVN-Kubernetes' own networks.
func TestConfiguredNetworks(t *testing.T) {
	o := &operatorv1.OVNKubernetesConfig{IPv4: &operatorv1.IPv4OVNKubernetesConfig{InternalJoinSubnet: "192.0.0.0/16"}}
	text := []byte(base(t))
	_, _, err := Read(file, text, Options{Purpose: SingleNode, OVNKubernetes: o})
	fixture.Fails(t, "the configured join network", err, "overlaps 192.0.0.0/16 of OVN-Kubernetes' own join network")
	o.IPv4.InternalJoinSubnet = "100.70.0.0/16"
	if _, _, err := Read(file, []byte(changed(t, "192.0.2.0/24", "100.64.10.0/24")), Options{Purpose: SingleNode, OVNKubernetes: o}); err != nil {
		t.Errorf("the default join network is free: %v", err)
	}
	o.IPv4.InternalJoinSubnet = "100.70/16"
	_, _, err = Read(file, text, Options{Purpose: SingleNode, OVNKubernetes: o})
	fixture.Fails(t, "no network", err, "the join network that OVN-Kubernetes gets is not a network")
}

// The rule for repositories is that of openshift/api.
func TestRepositoryPattern(t *testing.T) {
	dir := fixture.Must(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output())
	crd := fixture.Must(os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml")))
	if !strings.Contains(string(crd), "pattern: "+repositoryName.String()+"\n") {
		t.Errorf("ImageDigestMirrorSet has another pattern than %s", repositoryName)
	}
}

func TestCheckNode(t *testing.T) {
	addresses := func(list ...string) (all []netip.Addr) {
		for _, a := range list {
			all = append(all, netip.MustParseAddr(a))
		}
		return all
	}
	prefixes := func(list ...string) (all []netip.Prefix) {
		for _, p := range list {
			all = append(all, netip.MustParsePrefix(p))
		}
		return all
	}
	one := Networking{MachineNetwork: prefixes("192.0.2.0/24"), ServiceNetwork: prefixes("172.30.0.0/16")}
	two := Networking{MachineNetwork: prefixes("192.0.2.0/24", "2001:db8::/64"), ServiceNetwork: prefixes("172.30.0.0/16", "fd02::/112")}
	for name, test := range map[string]struct {
		network Networking
		known   NodeAddresses
		want    string
	}{
		"unknown":            {one, NodeAddresses{Automatic4: true, Automatic6: true}, ""},
		"static":             {one, NodeAddresses{Static: prefixes("203.0.113.10/24", "192.0.2.10/24")}, ""},
		"static outside":     {one, NodeAddresses{Static: prefixes("203.0.113.10/24")}, "the network configuration: no address of the node is in a machine network of IPv4; it sets [203.0.113.10/24], and networking.machineNetwork has [192.0.2.0/24]"},
		"outside, and DHCP":  {one, NodeAddresses{Static: prefixes("203.0.113.10/24"), Automatic4: true}, ""},
		"DHCP of one family": {one, NodeAddresses{Static: prefixes("203.0.113.10/24"), Automatic6: true}, "of IPv4"},
		"given":              {one, NodeAddresses{Given: addresses("192.0.2.10"), Automatic4: true}, ""},
		"given outside":      {one, NodeAddresses{Given: addresses("203.0.113.10"), Automatic4: true}, "--node-ip 203.0.113.10: no address of the node is in a machine network; networking.machineNetwork has [192.0.2.0/24]"},
		"given, and not set": {one, NodeAddresses{Given: addresses("192.0.2.10"), Static: prefixes("192.0.2.11/24")}, "--node-ip 192.0.2.10: no address of the node is in a machine network: the network configuration does not set it"},
		"one family given":   {two, NodeAddresses{Given: addresses("192.0.2.10"), Automatic4: true, Automatic6: true}, "Services have addresses of IPv6 too"},
		"both given":         {two, NodeAddresses{Given: addresses("192.0.2.10", "2001:db8::10"), Automatic4: true, Automatic6: true}, ""},
		"family missing":     {two, NodeAddresses{Static: prefixes("192.0.2.10/24")}, "of IPv6"},
		"family by router":   {two, NodeAddresses{Static: prefixes("192.0.2.10/24"), Automatic6: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.network.CheckNode(test.known)
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !errors.Is(err, ErrNodeAddress)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// The older variable has the disk as its last argument (R-BIP-9).
func TestOlderVariable(t *testing.T) {
	without := changed(t, "bootstrapInPlace:\n  installationDisk: /dev/disk/by-id/wwn-0x5000c500a0b1c2d3\n", "")
	for name, test := range map[string]struct {
		text, variable, disk string
		arguments            []string
		want                 string
	}{
		"alone":    {without, "--copy-network /dev/vda", "/dev/vda", []string{"--copy-network"}, ""},
		"agree":    {base(t), "/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", []string{}, ""},
		"no disk":  {base(t), "--copy-network", "/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", []string{"--copy-network"}, ""},
		"disagree": {base(t), "/dev/vda", "", nil, DiskVariable + ` has "/dev/vda"; unset the variable`},
		"neither":  {without, "--copy-network", "", nil, "name the disk to install to"},
	} {
		t.Run(name, func(t *testing.T) {
			c, warnings, err := Read(file, []byte(test.text), Options{Purpose: SingleNode, InstallerArguments: test.variable})
			if len(warnings) != 1 || !strings.Contains(warnings[0], DiskVariable) {
				t.Errorf("warnings %v", warnings)
			}
			if test.want != "" {
				fixture.Fails(t, "", err, test.want)
				return
			}
			fixture.NoError(t, err)
			if c.BootstrapInPlace.InstallationDisk != test.disk {
				t.Errorf("disk %s", c.BootstrapInPlace.InstallationDisk)
			}
			fixture.Equal(t, "arguments", test.arguments, c.InstallerArguments)
		})
	}
}

// Read terminates for any file, and a config always has one control-plane replica.
func FuzzRead(f *testing.F) {
	f.Add([]byte(base(f)), "")
	f.Add([]byte(smallest), "--copy-network /dev/vda")
	f.Add([]byte("a: &a [*a]"), " ")
	f.Add([]byte("compute: &a [*a]"), "")
	f.Fuzz(func(t *testing.T, text []byte, variable string) {
		for _, purpose := range []Purpose{SingleNode, AllInOne} {
			c, _, err := Read("f", text, Options{Purpose: purpose, InstallerArguments: variable})
			if (err == nil) != (c != nil) {
				t.Fatalf("config %v, error %v", c, err)
			}
			if c != nil && *c.ControlPlane.Replicas != 1 {
				t.Errorf("replicas %d", *c.ControlPlane.Replicas)
			}
		}
	})
}
