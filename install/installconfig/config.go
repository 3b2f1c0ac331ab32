package installconfig

import (
	"net/netip"

	configv1 "github.com/openshift/api/config/v1"
)

// Config is an install-config.yaml, in the form of openshift-install, with its defaults filled in. Fields says what becomes of each
// field.
type Config struct {
	Name             string // metadata.name
	BaseDomain       string
	Networking       Networking
	ControlPlane     *Pool
	Compute          []Pool
	Platform         configv1.PlatformType // None or External
	ExternalPlatform *ExternalPlatform
	BootstrapInPlace *BootstrapInPlace
	// InstallerArguments are those of the older environment variable, without the disk.
	InstallerArguments          []string
	PullSecret                  string
	SSHKeys                     []string // sshKey has one key on each line
	Proxy                       *Proxy
	ImageDigestSources          []ImageSource
	AdditionalTrustBundle       string
	AdditionalTrustBundlePolicy TrustBundlePolicy
	FIPS                        bool
	CPUPartitioning             configv1.CPUPartitioningMode
	Capabilities                *Capabilities
	FeatureSet                  configv1.FeatureSet
	// Raw is the file, without the pull secret, for the ConfigMap kube-system/cluster-config-v1 that operators read.
	Raw []byte
}

// ExternalPlatform is the section platform.external.
type ExternalPlatform struct {
	Name                   string
	CloudControllerManager string
}

// Networking is the section networking.
type Networking struct {
	NetworkType    string
	MachineNetwork []netip.Prefix
	ClusterNetwork []ClusterNetwork
	ServiceNetwork []netip.Prefix
}

// ClusterNetwork is a range of pod addresses, and how long the prefix of a node's share is.
type ClusterNetwork struct {
	CIDR       netip.Prefix
	HostPrefix int32
}

// Pool is a machine pool. Replicas is nil where the file has none.
type Pool struct {
	Name           string
	Replicas       *int64
	Architecture   string
	Hyperthreading string
}

// BootstrapInPlace is the section of that name.
type BootstrapInPlace struct {
	InstallationDisk string
}

// Proxy is the cluster-wide proxy.
type Proxy struct {
	HTTPProxy, HTTPSProxy, NoProxy string
}

// ImageSource is a repository and where else its images are.
type ImageSource struct {
	Source       string
	Mirrors      []string
	SourcePolicy configv1.MirrorSourcePolicy
}

// TrustBundlePolicy is when the additional trust bundle is used.
type TrustBundlePolicy string

// The policies, the default first.
const (
	TrustBundleProxyOnly TrustBundlePolicy = "Proxyonly"
	TrustBundleAlways    TrustBundlePolicy = "Always"
)

// Capabilities are which optional parts of a release are installed.
type Capabilities struct {
	BaselineCapabilitySet         configv1.ClusterVersionCapabilitySet
	AdditionalEnabledCapabilities []configv1.ClusterVersionCapability
}

// Domain is the cluster's domain.
func (c *Config) Domain() string { return c.Name + "." + c.BaseDomain }
