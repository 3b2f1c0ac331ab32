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
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/solonode/sno/render/inputs"
)

func (r *reader) config(raw *rawConfig) *Config {
	c := &Config{
		Name: raw.Metadata.Name, BaseDomain: strings.TrimSuffix(raw.BaseDomain, "."),
		PullSecret: raw.PullSecret, AdditionalTrustBundle: raw.AdditionalTrustBundle, FIPS: raw.FIPS, FeatureSet: configv1.FeatureSet(raw.FeatureSet),
	}
	if raw.APIVersion != "v1" {
		r.fault(inputs.ErrInvalid, "apiVersion", `write "apiVersion: v1"`, "%q is not v1", raw.APIVersion)
	}
	r.names(c)
	r.pools(c, raw)
	r.platform(c, raw)
	r.disk(c, raw)
	r.pullSecret(raw.PullSecret)
	r.networking(c, raw)
	c.SSHKeys = r.sshKeys(raw.SSHKey)
	r.trust(c, raw)
	r.proxy(c, raw)
	r.mirrors(c, raw)
	r.choices(c, raw)
	c.Raw = r.forOperators(c.Networking)
	return c
}

func (r *reader) names(c *Config) {
	if c.Name == "" {
		r.fault(inputs.ErrMissing, "metadata.name", "set the cluster's name", "the cluster has no name")
	} else if wrong := validation.IsDNS1123Label(c.Name); len(wrong) > 0 {
		r.fault(inputs.ErrInvalid, "metadata.name", "it is a part of DNS names, such as sno-1", "%q: %s", c.Name, strings.Join(wrong, ", "))
	}
	if c.BaseDomain == "" {
		r.fault(inputs.ErrMissing, "baseDomain", "set the parent of the cluster's domain, such as example.com", "there is no base domain")
	} else if wrong := validation.IsDNS1123Subdomain(c.BaseDomain); len(wrong) > 0 {
		r.fault(inputs.ErrInvalid, "baseDomain", "set a domain, such as example.com", "%q: %s", c.BaseDomain, strings.Join(wrong, ", "))
	} else if domain := c.Domain(); c.Name != "" && len(domain) > 253-len("api-int.") {
		r.fault(inputs.ErrInvalid, "baseDomain", "choose a shorter one", "%q with the cluster's name is too long for a DNS name", c.BaseDomain)
	}
}

// pools requires exactly one control-plane replica, without a default (U-INS-2, U-INS-20).
func (r *reader) pools(c *Config, raw *rawConfig) {
	switch pool := raw.ControlPlane; {
	case pool == nil || pool.Replicas == nil:
		r.fault(inputs.ErrMissing, "controlPlane.replicas", "write 1", "the number of control-plane nodes is missing, which means 3")
	case *pool.Replicas != 1:
		r.fault(inputs.ErrInvalid, "controlPlane.replicas", "write 1, or use openshift-install", "a single node has one control-plane replica, not %d", *pool.Replicas)
	}
	if raw.ControlPlane != nil {
		c.ControlPlane = r.pool("controlPlane", "master", *raw.ControlPlane)
	}
	if len(raw.Compute) == 0 {
		r.fault(inputs.ErrMissing, "compute", "write replicas: 0, or the number of workers at the installation", "there are no compute pools, which means three workers")
	}
	var workers int64
	for i, pool := range raw.Compute {
		at := fmt.Sprintf("compute[%d]", i)
		c.Compute = append(c.Compute, *r.pool(at, "worker", pool))
		switch {
		case i > 0:
			r.fault(inputs.ErrInvalid, at, "keep one", "there are several compute pools")
		case pool.Replicas == nil:
			r.fault(inputs.ErrMissing, at+".replicas", "write 0, or the number of workers at the installation", "the number of workers is missing, which means 3")
		case *pool.Replicas < 0:
			r.fault(inputs.ErrInvalid, at+".replicas", "write 0 or more", "%d is negative", *pool.Replicas)
		default:
			workers += *pool.Replicas
		}
	}
	if r.Purpose == AllInOne && workers > 0 {
		r.fault(inputs.ErrInvalid, "compute[0].replicas", "write 0", "an all-in-one node has no workers, and there are %d", workers)
	}
}

func (r *reader) pool(at, name string, raw rawPool) *Pool {
	if raw.Name != "" && raw.Name != name {
		r.fault(inputs.ErrInvalid, at+".name", "write "+name, "%q is not %s", raw.Name, name)
	}
	r.oneOf(at+".hyperthreading", raw.Hyperthreading, "Enabled", "Disabled")
	return &Pool{Name: name, Replicas: raw.Replicas, Architecture: raw.Architecture, Hyperthreading: raw.Hyperthreading}
}

func (r *reader) oneOf(at, value string, values ...string) {
	if value != "" && !slices.Contains(values, value) {
		r.fault(inputs.ErrInvalid, at, "use one of "+strings.Join(values, ", "), "unknown value %q", value)
	}
}

func (r *reader) platform(c *Config, raw *rawConfig) {
	switch none, external := raw.Platform.None != nil, raw.Platform.External != nil; {
	case none && external:
		r.fault(inputs.ErrInvalid, "platform", "keep one", "there are two platforms")
	case none:
		c.Platform = configv1.NonePlatformType
	case external:
		c.Platform = configv1.ExternalPlatformType
		c.ExternalPlatform = &ExternalPlatform{Name: raw.Platform.External.PlatformName, CloudControllerManager: raw.Platform.External.CloudControllerManager}
		r.oneOf("platform.external.cloudControllerManager", c.ExternalPlatform.CloudControllerManager, "External")
		if c.ExternalPlatform.Name == "" {
			r.fault(inputs.ErrMissing, "platform.external.platformName", "name the platform", "an external platform has a name")
		}
	case !slices.ContainsFunc(r.faults, func(f inputs.Fault) bool { return strings.HasPrefix(f.Field, "platform.") }):
		r.fault(inputs.ErrMissing, "platform", `write "none: {}" below it`, "there is no platform")
	}
}

// disk reads the field, or the older environment variable with a warning (U-INS-2).
func (r *reader) disk(c *Config, raw *rawConfig) {
	const at = "bootstrapInPlace.installationDisk"
	if raw.BootstrapInPlace != nil {
		c.BootstrapInPlace = &BootstrapInPlace{InstallationDisk: raw.BootstrapInPlace.InstallationDisk}
	}
	if r.Purpose == AllInOne {
		if raw.BootstrapInPlace != nil {
			r.warnings = append(r.warnings, fmt.Sprintf("%s:%d: bootstrapInPlace: without effect: an all-in-one node boots from its disk already", r.file, r.line("bootstrapInPlace")))
		}
		return
	}
	disk := ""
	if c.BootstrapInPlace != nil {
		disk = c.BootstrapInPlace.InstallationDisk
	}
	if arguments := strings.Fields(r.InstallerArguments); len(arguments) > 0 {
		last := arguments[len(arguments)-1]
		r.warnings = append(r.warnings, DiskVariable+" is older than the field "+at+", and will be removed: use the field")
		switch {
		case strings.HasPrefix(last, "-"):
			c.InstallerArguments = arguments
		case disk != "" && disk != last:
			r.fault(inputs.ErrConflict, at, "unset the variable", "it is %q, and %s has %q", disk, DiskVariable, last)
		default:
			disk, c.InstallerArguments = last, arguments[:len(arguments)-1]
			c.BootstrapInPlace = &BootstrapInPlace{InstallationDisk: disk}
		}
	}
	const advice = "name one device, best by /dev/disk/by-id/..."
	switch {
	case disk == "":
		r.fault(inputs.ErrMissing, at, "name the disk, best by /dev/disk/by-id/...", "there is no disk to install to")
	case strings.Contains(disk, " -"):
		r.fault(inputs.ErrInvalid, at, "write the device alone; the network of the installed node is that of --network-config",
			"%q has arguments of coreos-installer, which takes one device here", disk)
	case strings.ContainsAny(disk, "<>{}$") || placeholder.MatchString(disk):
		r.fault(inputs.ErrInvalid, at, advice, "%q has a placeholder", disk)
	case path.Clean(disk) != disk || !device.MatchString(disk):
		r.fault(inputs.ErrInvalid, at, advice, "%q is not the path of a device", disk)
	case folderOfDevices.MatchString(disk):
		r.fault(inputs.ErrInvalid, at, advice, "%q is a folder of devices", disk)
	}
}

var (
	// device matches the names that udev gives to devices and their links.
	device          = regexp.MustCompile(`^/dev(/[A-Za-z0-9#+.:=@_\\-]+)+$`)
	folderOfDevices = regexp.MustCompile(`^/dev/(disk(/by-[a-z-]+)?|mapper|block|md|shm|pts|bus|char)$`)
	// placeholder matches names such as sdX and nvmeXn1, as documents have them.
	placeholder = regexp.MustCompile(`^/dev/(sd|vd|xvd|nvme|dasd)[A-Z]`)
)

func (r *reader) pullSecret(text string) {
	const advice = "get it from the provider of the release images"
	var secret struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	switch err := json.Unmarshal([]byte(text), &secret); {
	case text == "" && r.Purpose == AllInOne:
		// Images of Kubernetes are public, or on the node.
	case text == "":
		r.fault(inputs.ErrMissing, "pullSecret", advice, "there is no pull secret, so no release image can be pulled")
	case err != nil:
		r.fault(inputs.ErrInvalid, "pullSecret", advice, "not JSON: %v", err)
	case len(secret.Auths) == 0:
		r.fault(inputs.ErrInvalid, "pullSecret", advice, "it has no auths")
	}
	for registry, entry := range secret.Auths {
		if decoded, err := base64.StdEncoding.DecodeString(entry.Auth); err != nil || !strings.Contains(string(decoded), ":") {
			r.fault(inputs.ErrInvalid, "pullSecret", advice, "the auth of %s is not USER:PASSWORD in base64", registry)
		}
	}
}

func (r *reader) sshKeys(text string) []string {
	var keys []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		_, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			r.fault(inputs.ErrInvalid, "sshKey", "write public keys, one on each line", "a line is not a public key: %v", err)
		}
		for _, option := range options {
			if !keyOption.MatchString(option) {
				r.fault(inputs.ErrInvalid, "sshKey", "remove it: sshd ignores a line with an option that it does not know", "%q before a key is not an option", option)
			}
		}
		keys = append(keys, line)
	}
	return keys
}

// keyOption matches the options of a line of authorized_keys, as in sshd(8).
var keyOption = regexp.MustCompile(`(?i)^(((no-)?(agent-forwarding|port-forwarding|pty|user-rc|x11-forwarding|touch-required))|cert-authority|restrict|` +
	`verify-required|(command|environment|expiry-time|from|permitlisten|permitopen|principals|tunnel)=".*")$`)

func (r *reader) trust(c *Config, raw *rawConfig) {
	r.oneOf("additionalTrustBundlePolicy", raw.AdditionalTrustBundlePolicy, string(TrustBundleProxyOnly), string(TrustBundleAlways))
	c.AdditionalTrustBundlePolicy = TrustBundleProxyOnly
	if raw.AdditionalTrustBundlePolicy != "" {
		c.AdditionalTrustBundlePolicy = TrustBundlePolicy(raw.AdditionalTrustBundlePolicy)
	}
	rest := []byte(strings.TrimSpace(raw.AdditionalTrustBundle))
	for n := 1; len(rest) > 0; n++ {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil || block.Type != "CERTIFICATE" {
			r.fault(inputs.ErrCertificate, "additionalTrustBundle", "write certificates in PEM, and nothing else", "part %d is not a certificate in PEM", n)
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			r.fault(inputs.ErrCertificate, "additionalTrustBundle", "write certificates in PEM", "certificate %d: %v", n, err)
		}
	}
}

func (r *reader) proxy(c *Config, raw *rawConfig) {
	if raw.Proxy == nil {
		return
	}
	c.Proxy = &Proxy{HTTPProxy: raw.Proxy.HTTPProxy, HTTPSProxy: raw.Proxy.HTTPSProxy, NoProxy: raw.Proxy.NoProxy}
	if c.Proxy.HTTPProxy == "" && c.Proxy.HTTPSProxy == "" {
		r.fault(inputs.ErrMissing, "proxy", "set httpProxy or httpsProxy, or remove it", "it has no proxy")
	}
	r.proxyURL("httpProxy", c.Proxy.HTTPProxy, "http")
	r.proxyURL("httpsProxy", c.Proxy.HTTPSProxy, "http", "https")
	if c.Proxy.NoProxy == "" || c.Proxy.NoProxy == "*" {
		return
	}
	for _, entry := range strings.Split(c.Proxy.NoProxy, ",") {
		entry = strings.TrimSpace(entry)
		_, notCIDR := netip.ParsePrefix(entry)
		address, notAddress := netip.ParseAddr(entry)
		switch {
		case entry == "":
			r.fault(inputs.ErrInvalid, "proxy.noProxy", "remove a comma", "there is an empty entry")
		case entry == "*":
			r.fault(inputs.ErrInvalid, "proxy.noProxy", "write * alone, or remove it", "there are other entries beside *")
		case notAddress == nil && address.Is6():
			r.fault(inputs.ErrInvalid, "proxy.noProxy", "write "+entry+"/128", "an IPv6 address is given as a network, and %q is not one", entry)
		case notCIDR != nil && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(entry, "."))) > 0:
			r.fault(inputs.ErrInvalid, "proxy.noProxy", "write domains, addresses and CIDRs, separated by commas", "%q is not a domain, an address or a CIDR", entry)
		}
	}
}

// proxyURL has the rule of the cluster-network-operator, which refuses the whole Proxy for one wrong field (U-INS-33).
func (r *reader) proxyURL(name, value string, schemes ...string) {
	if value == "" {
		return
	}
	// The value may have a password, so it is not printed.
	invalid := func(problem string) {
		r.fault(inputs.ErrInvalid, "proxy."+name, "write http://HOST:PORT", "%s", problem)
	}
	u, err := url.Parse(value)
	if err != nil {
		invalid("not a URL")
		return
	}
	_, notAddress := netip.ParseAddr(u.Hostname())
	port, notPort := strconv.Atoi(cmp.Or(u.Port(), "1"))
	switch {
	case !slices.Contains(schemes, u.Scheme):
		invalid("not an " + strings.Join(schemes, " or ") + " URL")
	case notAddress != nil && len(validation.IsDNS1123Subdomain(u.Hostname())) > 0:
		invalid("the host is neither a DNS name nor an address")
	case notPort != nil || port < 1 || port > 65535:
		invalid("the port is not between 1 and 65535")
	}
}

func (r *reader) mirrors(c *Config, raw *rawConfig) {
	sources, name := raw.ImageDigestSources, "imageDigestSources"
	if len(raw.ImageContentSources) > 0 {
		if len(sources) > 0 {
			r.fault(inputs.ErrConflict, "imageContentSources", "keep imageDigestSources", "there are imageDigestSources too")
		}
		sources, name = raw.ImageContentSources, "imageContentSources"
	}
	for i, s := range sources {
		at := fmt.Sprintf("%s[%d]", name, i)
		for j, repository := range append([]string{s.Source}, s.Mirrors...) {
			field := at + ".source"
			if j > 0 {
				field = fmt.Sprintf("%s.mirrors[%d]", at, j-1)
			}
			r.repository(field, repository)
			if j > 0 && slices.Contains(s.Mirrors[:j-1], repository) {
				r.fault(inputs.ErrDuplicate, field, "keep one", "%q is given before", repository)
			}
		}
		r.oneOf(at+".sourcePolicy", s.SourcePolicy, string(configv1.NeverContactSource), string(configv1.AllowContactingSource))
		c.ImageDigestSources = append(c.ImageDigestSources, ImageSource{Source: s.Source, Mirrors: s.Mirrors, SourcePolicy: configv1.MirrorSourcePolicy(s.SourcePolicy)})
	}
}

// repositoryName is the pattern of mirrors in ImageDigestMirrorSet of openshift/api (U-INS-33). That of sources has
// *.DOMAIN too, which openshift-install refuses.
var repositoryName = regexp.MustCompile(`^((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(?::[0-9]+)?)` +
	`(?:(?:/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$`)

func (r *reader) repository(at, value string) {
	advice := "write REGISTRY/REPOSITORY in lower case, without tag or digest"
	if _, _, isURL := strings.Cut(value, "://"); isURL {
		advice = "write REGISTRY/REPOSITORY without a scheme"
	}
	host, _, _ := strings.Cut(value, "/")
	_, port, _ := strings.Cut(host, ":")
	number, err := strconv.Atoi(cmp.Or(port, "1"))
	if !repositoryName.MatchString(value) || err != nil || number < 1 || number > 65535 {
		r.fault(inputs.ErrInvalid, at, advice, "%q is not a repository", value)
	}
}

func (r *reader) choices(c *Config, raw *rawConfig) {
	r.oneOf("publish", raw.Publish, "External")
	c.CPUPartitioning = configv1.CPUPartitioningNone
	if raw.CPUPartitioningMode != "" {
		c.CPUPartitioning = configv1.CPUPartitioningMode(raw.CPUPartitioningMode)
	}
	r.oneOf("cpuPartitioningMode", raw.CPUPartitioningMode, string(configv1.CPUPartitioningNone), string(configv1.CPUPartitioningAllNodes))
	r.oneOf("featureSet", raw.FeatureSet, string(configv1.TechPreviewNoUpgrade), string(configv1.DevPreviewNoUpgrade), string(configv1.OKD))
	if raw.FIPS && r.Purpose == AllInOne {
		r.fault(inputs.ErrUnsupported, "fips", "boot an image that is in FIPS mode", "without a machine-config operator nothing enables FIPS mode on a node")
	}
	if k := raw.Capabilities; k != nil {
		sets := []string{string(configv1.ClusterVersionCapabilitySetNone), string(configv1.ClusterVersionCapabilitySetCurrent)}
		for set := range configv1.ClusterVersionCapabilitySets {
			sets = append(sets, string(set))
		}
		slices.Sort(sets)
		r.oneOf("capabilities.baselineCapabilitySet", k.BaselineCapabilitySet, slices.Compact(sets)...)
		c.Capabilities = &Capabilities{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySet(k.BaselineCapabilitySet)}
		for i, name := range k.AdditionalEnabledCapabilities {
			capability := configv1.ClusterVersionCapability(name)
			if !slices.Contains(configv1.KnownClusterVersionCapabilities, capability) {
				r.fault(inputs.ErrInvalid, fmt.Sprintf("capabilities.additionalEnabledCapabilities[%d]", i), "see the release's capabilities", "unknown capability %q", name)
			}
			c.Capabilities.AdditionalEnabledCapabilities = append(c.Capabilities.AdditionalEnabledCapabilities, capability)
		}
	}
}
