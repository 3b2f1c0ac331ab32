// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"errors"
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

	"github.com/solonode/sno/render/inputs"
)

const file = "testdata/install-config.yaml"

func base(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
	if diff := cmp.Diff(want, c, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Domain() != "sno.example.com" {
		t.Errorf("domain %s", c.Domain())
	}
}

const smallest = "apiVersion: v1\nmetadata: {name: sno}\nbaseDomain: example.com.\ncontrolPlane: {replicas: 1}\ncompute: [{replicas: 0}]\nplatform: {none: {}}\n"

func TestDefaults(t *testing.T) {
	c, _, err := Read(file, []byte(smallest), Options{Purpose: AllInOne})
	if err != nil {
		t.Fatal(err)
	}
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
		kind             error
		want             string
	}{
		"no control plane":        {"controlPlane:\n  name: master\n  replicas: 1\n  hyperthreading: Enabled\n", "", SingleNode, inputs.ErrMissing, "controlPlane.replicas: the number of control-plane nodes is missing, which means 3; write 1"},
		"nil replicas":            {"  replicas: 1\n", "", SingleNode, inputs.ErrMissing, ":6: controlPlane.replicas: the number"},
		"null replicas":           {"replicas: 1\n", "replicas: null\n", SingleNode, inputs.ErrMissing, ":8: controlPlane.replicas: the number"},
		"two replicas":            {"replicas: 1\n", "replicas: 2\n", SingleNode, inputs.ErrInvalid, ":8: controlPlane.replicas: a single node has one control-plane replica, not 2"},
		"no replica":              {"replicas: 1\n", "replicas: 0\n", AllInOne, inputs.ErrInvalid, ":8: controlPlane.replicas: a single node has one control-plane replica, not 0"},
		"replicas as text":        {"replicas: 1\n", "replicas: one\n", SingleNode, inputs.ErrSyntax, ":8: cannot unmarshal"},
		"no compute":              {"compute:\n- name: worker\n  replicas: 0\n", "", SingleNode, inputs.ErrMissing, "compute: there are no compute pools, which means three workers"},
		"no compute replicas":     {"  replicas: 0\n", "", SingleNode, inputs.ErrMissing, ":11: compute[0].replicas: the number of workers is missing"},
		"negative workers":        {"replicas: 0\n", "replicas: -1\n", SingleNode, inputs.ErrInvalid, ":12: compute[0].replicas: -1 is negative"},
		"all-in-one with workers": {"replicas: 0\n", "replicas: 2\n", AllInOne, inputs.ErrInvalid, ":12: compute[0].replicas: an all-in-one node has no workers, and there are 2; write 0"},
		"no pull secret":          {`pullSecret: '{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}'`, "", SingleNode, inputs.ErrMissing, "pullSecret: there is no pull secret"},
		"pull secret":             {`'{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}'`, "x", SingleNode, inputs.ErrInvalid, "pullSecret: not JSON"},
		"empty pull secret":       {`{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}`, "{}", SingleNode, inputs.ErrInvalid, "pullSecret: it has no auths"},
		"pull secret's auth":      {"dXNlcjpwYXNz", "dXNlcg==", SingleNode, inputs.ErrInvalid, "pullSecret: the auth of registry.example.com is not USER:PASSWORD in base64"},
		"no disk":                 {"bootstrapInPlace:\n  installationDisk: /dev/disk/by-id/wwn-0x5000c500a0b1c2d3\n", "", SingleNode, inputs.ErrMissing, "bootstrapInPlace.installationDisk: there is no disk to install to; name the disk"},
		"empty disk":              {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", `""`, SingleNode, inputs.ErrMissing, "there is no disk"},
		"disk without a path":     {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "sda", SingleNode, inputs.ErrInvalid, `bootstrapInPlace.installationDisk: "sda" is not the path of a device`},
		"file for a disk":         {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/../etc", SingleNode, inputs.ErrInvalid, `"/dev/../etc" is not the path of a device`},
		"cloud":                   {"none: {}", "aws: {region: x}", SingleNode, inputs.ErrUnsupported, "platform.aws: refused: bootstrap in place and all-in-one are for machines, not for clouds; remove the field"},
		"no platform":             {"  none: {}\n", "  none: null\n", SingleNode, inputs.ErrMissing, "platform: there is no platform"},
		"two platforms":           {"none: {}", "none: {}\n  external: {platformName: x}", SingleNode, inputs.ErrInvalid, "platform: there are two platforms"},
		"other network":           {"networkType: OVNKubernetes", "networkType: OpenShiftSDN", SingleNode, inputs.ErrInvalid, `networking.networkType: unknown value "OpenShiftSDN"; use one of OVNKubernetes`},
		"no network":              {"cidr: 192.0.2.0/24", "cidr: 192.0.2.0", SingleNode, inputs.ErrInvalid, `networking.machineNetwork[0].cidr: "192.0.2.0" is not a network`},
		"host bits":               {"cidr: 192.0.2.0/24", "cidr: 192.0.2.7/24", SingleNode, inputs.ErrInvalid, "write 192.0.2.0/24"},
		"overlap":                 {"cidr: 192.0.2.0/24", "cidr: 172.30.4.0/24", SingleNode, inputs.ErrOverlap, "networking.serviceNetwork[0]: 172.30.0.0/16 overlaps 172.30.4.0/24 of networking.machineNetwork[0].cidr"},
		"overlap with a default":  {"  machineNetwork:\n  - cidr: 192.0.2.0/24\n  clusterNetwork:\n  - cidr: 10.128.0.0/14", "  clusterNetwork:\n  - cidr: 10.0.0.0/14", SingleNode, inputs.ErrOverlap, "of networking.clusterNetwork[0].cidr"},
		"host prefix":             {"hostPrefix: 23", "hostPrefix: 13", SingleNode, inputs.ErrInvalid, "networking.clusterNetwork[0].hostPrefix: a range of /13 does not fit into 10.128.0.0/14, or has no address for pods; write a number from 14 to 30"},
		"families":                {"  - 172.30.0.0/16", "  - fd02::/112", SingleNode, inputs.ErrInvalid, "networking.clusterNetwork: pods and services have different address families"},
		"old network field":       {"  networkType: OVNKubernetes", "  machineCIDR: 192.0.2.0/24", SingleNode, inputs.ErrUnsupported, ":14: networking.machineCIDR: refused: deprecated for a long time; use machineNetwork"},
		"name":                    {"name: sno", "name: Sno_1", SingleNode, inputs.ErrInvalid, `metadata.name: "Sno_1"`},
		"no name":                 {"  name: sno\n", "", SingleNode, inputs.ErrMissing, "metadata.name: the cluster has no name"},
		"domain":                  {"baseDomain: example.com", "baseDomain: example..com", SingleNode, inputs.ErrInvalid, `baseDomain: "example..com"`},
		"no domain":               {"baseDomain: example.com\n", "", SingleNode, inputs.ErrMissing, "baseDomain: there is no base domain"},
		"version":                 {"apiVersion: v1", "apiVersion: v2", SingleNode, inputs.ErrInvalid, `:1: apiVersion: "v2" is not v1`},
		"unknown field":           {"baseDomain:", "speed: 3\nbaseDomain:", SingleNode, inputs.ErrUnknownField, ":5: speed: unknown field; see docs/install-fields.md"},
		"unknown field below":     {"    hostPrefix: 23", "    hostPrefix: 23\n    hostprefix: 24", SingleNode, inputs.ErrUnknownField, "networking.clusterNetwork[0].hostprefix: unknown field"},
		"misspelled proxy":        {"  httpsProxy: ", "  htpProxy: x\n  httpsProxy: ", SingleNode, inputs.ErrUnknownField, "proxy.htpProxy: unknown field"},
		"field of platform none":  {"none: {}", "none: {region: x}", SingleNode, inputs.ErrUnknownField, ":23: platform.none.region: unknown field"},
		"field of another one":    {"none: {}", "external: {platformName: x, region: x}", SingleNode, inputs.ErrUnknownField, "platform.external.region: unknown field"},
		"key twice":               {"baseDomain: example.com", "baseDomain: example.com\nbaseDomain: example.org", SingleNode, inputs.ErrSyntax, `mapping key "baseDomain" already defined`},
		"second document":         {"sshKey: |", "---\nsshKey: |", SingleNode, inputs.ErrSyntax, "there is a second document"},
		"SSH key":                 {"ssh-ed25519 AAAA", "ssh-ed25519 AA!A", SingleNode, inputs.ErrInvalid, "sshKey: a line is not a public key"},
		"trust bundle":            {"sshKey: |", "additionalTrustBundle: hello\nsshKey: |", SingleNode, inputs.ErrCertificate, "additionalTrustBundle: part 1 is not a certificate in PEM"},
		"trust bundle's content":  {"sshKey: |", "additionalTrustBundle: |\n  -----BEGIN CERTIFICATE-----\n  AAAA\n  -----END CERTIFICATE-----\nsshKey: |", SingleNode, inputs.ErrCertificate, "additionalTrustBundle: certificate 1: "},
		"trust policy":            {"sshKey: |", "additionalTrustBundlePolicy: Never\nsshKey: |", SingleNode, inputs.ErrInvalid, `additionalTrustBundlePolicy: unknown value "Never"`},
		"proxy":                   {"http://proxy.example.com:3128", "user:secret@proxy", SingleNode, inputs.ErrInvalid, "proxy.httpsProxy: not an http or https URL"},
		"no proxy":                {"  httpsProxy: http://proxy.example.com:3128\n", "", SingleNode, inputs.ErrMissing, "proxy: it has no proxy"},
		"noProxy":                 {".example.org,", "exa mple,", SingleNode, inputs.ErrInvalid, `proxy.noProxy: "exa mple" is not a domain, an address or a CIDR`},
		"mirror":                  {"mirror.example.com:5000/release", "https://mirror.example.com/release:4", SingleNode, inputs.ErrInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirrors twice":           {"sshKey: |", "imageContentSources: [{source: a.example.com/b}]\nsshKey: |", SingleNode, inputs.ErrConflict, "imageContentSources: there are imageDigestSources too"},
		"mirror's space":          {"mirror.example.com:5000/release", `"mirror.example.com:5000/a b"`, SingleNode, inputs.ErrInvalid, `"mirror.example.com:5000/a b" is not a repository; write REGISTRY/REPOSITORY in lower case, without tag or digest`},
		"mirror's scheme":         {"mirror.example.com:5000/release", "https://mirror.example.com/release", SingleNode, inputs.ErrInvalid, "is not a repository; write REGISTRY/REPOSITORY without a scheme"},
		"mirror's case":           {"mirror.example.com:5000/release", "mirror.example.com:5000/Release", SingleNode, inputs.ErrInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirror's slash":          {"mirror.example.com:5000/release", "mirror.example.com:5000/release/", SingleNode, inputs.ErrInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirror's port":           {"mirror.example.com:5000/release", "mirror.example.com:65536/release", SingleNode, inputs.ErrInvalid, "imageDigestSources[0].mirrors[0]: "},
		"mirror twice":            {"  - mirror.example.com:5000/release\n", "  - mirror.example.com:5000/release\n  - mirror.example.com:5000/release\n", SingleNode, inputs.ErrDuplicate, "imageDigestSources[0].mirrors[1]: "},
		"source's scheme":         {"source: registry.example.com/release", "source: http://registry.example.com/release", SingleNode, inputs.ErrInvalid, "imageDigestSources[0].source: "},
		"source's case":           {"source: registry.example.com/release", "source: registry.example.com/Release", SingleNode, inputs.ErrInvalid, "imageDigestSources[0].source: "},
		"join network":            {"cidr: 192.0.2.0/24", "cidr: 100.64.10.0/24", SingleNode, inputs.ErrOverlap, "networking.machineNetwork[0].cidr: 100.64.10.0/24 overlaps 100.64.0.0/16 of OVN-Kubernetes' own join network"},
		"transit network":         {"172.30.0.0/16", "100.88.0.0/17", SingleNode, inputs.ErrOverlap, "of OVN-Kubernetes' own transit switch network"},
		"masquerade network":      {"cidr: 10.128.0.0/14", "cidr: 169.254.0.0/18", SingleNode, inputs.ErrOverlap, "networking.clusterNetwork[0].cidr: 169.254.0.0/18 overlaps 169.254.0.0/17"},
		"link-local machine":      {"cidr: 192.0.2.0/24", "cidr: 169.254.192.0/24", SingleNode, inputs.ErrInvalid, "169.254.192.0/24 has loopback, link-local or multicast addresses of 169.254.128.0/17"},
		"loopback network":        {"cidr: 192.0.2.0/24", "cidr: 127.8.0.0/16", SingleNode, inputs.ErrInvalid, "127.8.0.0/16 has loopback"},
		"multicast network":       {"172.30.0.0/16", "239.0.0.0/16", SingleNode, inputs.ErrInvalid, "networking.serviceNetwork[0]: 239.0.0.0/16 has loopback, link-local or multicast addresses of 224.0.0.0/4"},
		"small service network":   {"172.30.0.0/16", "172.30.0.0/29", SingleNode, inputs.ErrInvalid, "networking.serviceNetwork[0]: 172.30.0.0/29 has no tenth address"},
		"disk with arguments":     {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/vda --copy-network", SingleNode, inputs.ErrInvalid, "has arguments of coreos-installer, which takes one device here; write the device alone; the network of the installed node is that of --network-config"},
		"two disks":               {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sda,/dev/sdb", SingleNode, inputs.ErrInvalid, `"/dev/sda,/dev/sdb" is not the path of a device`},
		"two disks in a row":      {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sda /dev/sdb", SingleNode, inputs.ErrInvalid, `"/dev/sda /dev/sdb" is not the path of a device`},
		"disk's placeholder":      {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/<disk>", SingleNode, inputs.ErrInvalid, `"/dev/<disk>" has a placeholder`},
		"sdX":                     {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sdX", SingleNode, inputs.ErrInvalid, `"/dev/sdX" has a placeholder`},
		"folder of disks":         {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/disk/by-id", SingleNode, inputs.ErrInvalid, `"/dev/disk/by-id" is a folder of devices`},
		"disk with a slash":       {"/dev/disk/by-id/wwn-0x5000c500a0b1c2d3", "/dev/sda/", SingleNode, inputs.ErrInvalid, `"/dev/sda/" is not the path of a device`},
		"httpProxy by https":      {"  httpsProxy: http:", "  httpProxy: https:", SingleNode, inputs.ErrInvalid, "proxy.httpProxy: not an http URL"},
		"proxy's port":            {"proxy.example.com:3128", "proxy.example.com:70000", SingleNode, inputs.ErrInvalid, "proxy.httpsProxy: the port is not between 1 and 65535"},
		"proxy's host":            {"proxy.example.com:3128", "proxy_1.example.com:3128", SingleNode, inputs.ErrInvalid, "proxy.httpsProxy: the host is neither a DNS name nor an address"},
		"noProxy with a star":     {".example.org,", "'*,example.org'\n  # ", SingleNode, inputs.ErrInvalid, "proxy.noProxy: there are other entries beside *"},
		"noProxy, empty entry":    {".example.org,", ".example.org,,", SingleNode, inputs.ErrInvalid, "proxy.noProxy: there is an empty entry"},
		"noProxy, IPv6":           {".example.org,", "fd00::1,", SingleNode, inputs.ErrInvalid, `proxy.noProxy: an IPv6 address is given as a network, and "fd00::1" is not one; write fd00::1/128`},
		"SSH key's option":        {"ssh-ed25519 AAAA", "- ssh-ed25519 AAAA", SingleNode, inputs.ErrInvalid, `sshKey: "-" before a key is not an option`},
		"field's case":            {"bootstrapInPlace:\n", "bootstrapInPlace: {installationDisk: /dev/vda}\nBootstrapInPlace:\n", SingleNode, inputs.ErrUnknownField, "BootstrapInPlace: unknown field; did you mean bootstrapInPlace?"},
		"published inside":        {"sshKey: |", "publish: Internal\nsshKey: |", SingleNode, inputs.ErrInvalid, `publish: unknown value "Internal"`},
		"arbiter":                 {"sshKey: |", "arbiter: {replicas: 1}\nsshKey: |", SingleNode, inputs.ErrUnsupported, "arbiter: refused: an arbiter is for clusters of two nodes"},
		"FIPS without operator":   {"sshKey: |", "fips: true\nsshKey: |", AllInOne, inputs.ErrUnsupported, "fips: without a machine-config operator"},
		"capability":              {"sshKey: |", "capabilities: {additionalEnabledCapabilities: [Flying]}\nsshKey: |", SingleNode, inputs.ErrInvalid, `capabilities.additionalEnabledCapabilities[0]: unknown capability "Flying"`},
		"custom gates":            {"sshKey: |", "featureSet: CustomNoUpgrade\nsshKey: |", SingleNode, inputs.ErrInvalid, "featureSet: unknown value"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := Read(file, []byte(changed(t, test.old, test.replacement)), Options{Purpose: test.purpose})
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) || c != nil {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			var faults inputs.Faults
			if errors.As(err, &faults); len(faults) != 1 {
				t.Errorf("%d errors, want 1: %v", len(faults), err)
			}
		})
	}
	for name, text := range map[string]string{"empty": "", "a list": "- a", "no YAML": "a: [", "a word": "hello"} {
		if _, _, err := Read(file, []byte(text), Options{}); !errors.Is(err, inputs.ErrSyntax) || !strings.HasPrefix(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllAtOnce(t *testing.T) {
	_, _, err := Read(file, []byte("controlPlane: {replicas: 3}\ncompute: []\nplatform: {gcp: {projectID: x}}\nspeed: 3\n"), Options{Purpose: SingleNode})
	var faults inputs.Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var fields []string
	for _, f := range faults {
		if f.Advice == "" || f.File != file {
			t.Errorf("no advice or file: %+v", f)
		}
		fields = append(fields, f.Field)
	}
	want := []string{"apiVersion", "metadata.name", "baseDomain", "bootstrapInPlace.installationDisk", "pullSecret", "controlPlane.replicas", "compute", "platform.gcp", "speed"}
	if diff := cmp.Diff(want, fields, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	text := changed(t, "  creationTimestamp: null", "  labels: {a: b}")
	text = strings.Replace(text, "- name: worker", "- name: worker\n  hyperthreading: Disabled", 1)
	_, warnings, err := Read(file, []byte(text), Options{Purpose: SingleNode})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		file + ":4: metadata.labels: without effect: only the name is used",
		file + ":12: compute[0].hyperthreading: without effect: the machine-config server configures workers",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
	if _, _, err := Read(file, []byte(changed(t, "none: {}", "aws: {}")), Options{Purpose: SingleNode}); !errors.Is(err, inputs.ErrUnsupported) {
		t.Errorf("a platform is chosen by its name alone: %v", err)
	}
}

// A manifest of the cluster network operator moves OVN-Kubernetes' own networks.
func TestConfiguredNetworks(t *testing.T) {
	o := &operatorv1.OVNKubernetesConfig{IPv4: &operatorv1.IPv4OVNKubernetesConfig{InternalJoinSubnet: "192.0.0.0/16"}}
	text := []byte(base(t))
	if _, _, err := Read(file, text, Options{Purpose: SingleNode, OVNKubernetes: o}); !errors.Is(err, inputs.ErrOverlap) {
		t.Errorf("the configured join network: %v", err)
	}
	o.IPv4.InternalJoinSubnet = "100.70.0.0/16"
	if _, _, err := Read(file, []byte(changed(t, "192.0.2.0/24", "100.64.10.0/24")), Options{Purpose: SingleNode, OVNKubernetes: o}); err != nil {
		t.Errorf("the default join network is free: %v", err)
	}
	o.IPv4.InternalJoinSubnet = "100.70/16"
	if _, _, err := Read(file, text, Options{Purpose: SingleNode, OVNKubernetes: o}); !errors.Is(err, inputs.ErrInvalid) {
		t.Errorf("no network: %v", err)
	}
}

// The rule for repositories is that of openshift/api.
func TestRepositoryPattern(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	crd, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
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
		"disagree": {base(t), "/dev/vda", "", nil, `and ` + DiskVariable + ` has "/dev/vda"; unset the variable`},
		"neither":  {without, "--copy-network", "", nil, "there is no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			c, warnings, err := Read(file, []byte(test.text), Options{Purpose: SingleNode, InstallerArguments: test.variable})
			if len(warnings) != 1 || !strings.Contains(warnings[0], DiskVariable) {
				t.Errorf("warnings %v", warnings)
			}
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.BootstrapInPlace.InstallationDisk != test.disk {
				t.Errorf("disk %s", c.BootstrapInPlace.InstallationDisk)
			}
			if diff := cmp.Diff(test.arguments, c.InstallerArguments); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
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
