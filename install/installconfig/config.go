// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"net/netip"

	configv1 "github.com/openshift/api/config/v1"
)

// Config is an install-config.yaml of openshift-install with defaults. Fields has the effect of each field.
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

// ClusterNetwork is a range of pod addresses, and the prefix length of a node's range.
type ClusterNetwork struct {
	CIDR       netip.Prefix
	HostPrefix int32
}

// Pool is a machine pool. Replicas is nil if the file has none.
type Pool struct {
	Name           string
	Replicas       *int64
	Architecture   string
	Hyperthreading string
}

// BootstrapInPlace is the section bootstrapInPlace.
type BootstrapInPlace struct {
	InstallationDisk string
}

// Proxy is the cluster-wide proxy.
type Proxy struct {
	HTTPProxy, HTTPSProxy, NoProxy string
}

// ImageSource is a repository and its mirrors.
type ImageSource struct {
	Source       string
	Mirrors      []string
	SourcePolicy configv1.MirrorSourcePolicy
}

// TrustBundlePolicy decides whether the additional trust bundle is used without a proxy.
type TrustBundlePolicy string

// Policies; the first is the default.
const (
	TrustBundleProxyOnly TrustBundlePolicy = "Proxyonly"
	TrustBundleAlways    TrustBundlePolicy = "Always"
)

// Capabilities are the optional parts of a release that are installed.
type Capabilities struct {
	BaselineCapabilitySet         configv1.ClusterVersionCapabilitySet
	AdditionalEnabledCapabilities []configv1.ClusterVersionCapability
}

// Domain returns the cluster's domain.
func (c *Config) Domain() string { return c.Name + "." + c.BaseDomain }
