// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/solonode/sno/render/document"
	"github.com/solonode/sno/topology"
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

// installConfig is the file: the fields that have an effect. The rules of each follow its type.
type installConfig struct {
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	BaseDomain                  string                       `json:"baseDomain"`
	SSHKey                      string                       `json:"sshKey"`
	PullSecret                  string                       `json:"pullSecret"`
	AdditionalTrustBundle       string                       `json:"additionalTrustBundle"`
	AdditionalTrustBundlePolicy TrustBundlePolicy            `json:"additionalTrustBundlePolicy"`
	Proxy                       *Proxy                       `json:"proxy"`
	ImageDigestSources          []ImageSource                `json:"imageDigestSources"`
	ImageContentSources         []ImageSource                `json:"imageContentSources"`
	Networking                  networks                     `json:"networking"`
	ControlPlane                *Pool                        `json:"controlPlane"`
	Compute                     []workers                    `json:"compute"`
	Platform                    platform                     `json:"platform"`
	BootstrapInPlace            *BootstrapInPlace            `json:"bootstrapInPlace"`
	FIPS                        bool                         `json:"fips"`
	CPUPartitioningMode         configv1.CPUPartitioningMode `json:"cpuPartitioningMode"`
	Capabilities                *Capabilities                `json:"capabilities"`
	FeatureSet                  configv1.FeatureSet          `json:"featureSet"`
	Publish                     string                       `json:"publish"`
}

func (r *reader) config(f *installConfig) *Config {
	c := &Config{
		Name: f.Metadata.Name, BaseDomain: strings.TrimSuffix(f.BaseDomain, "."), PullSecret: f.PullSecret,
		Proxy: f.Proxy, BootstrapInPlace: f.BootstrapInPlace, FIPS: f.FIPS, FeatureSet: f.FeatureSet, Capabilities: f.Capabilities,
	}
	if f.APIVersion != "v1" {
		r.invalid("apiVersion", f.APIVersion, `write "apiVersion: v1"`)
	}
	r.names(c)
	r.pools(c, f)
	r.platform(c, f.Platform)
	r.disk(c)
	r.pullSecret(f.PullSecret)
	c.Networking = r.networking(f.Networking)
	c.SSHKeys = r.sshKeys(f.SSHKey)
	r.trust(c, f)
	r.proxy(f.Proxy)
	r.mirrors(c, f)
	r.choices(c, f)
	return c
}

// Domain returns the cluster's domain.
func (c *Config) Domain() string { return c.Name + "." + c.BaseDomain }

func (r *reader) names(c *Config) {
	if c.Name == "" {
		r.required("metadata.name", "set the cluster's name")
	} else if wrong := validation.IsDNS1123Label(c.Name); len(wrong) > 0 {
		r.invalid("metadata.name", c.Name, "it is a part of DNS names, such as sno-1: "+strings.Join(wrong, ", "))
	}
	if c.BaseDomain == "" {
		r.required("baseDomain", "set the parent of the cluster's domain, such as example.com")
	} else if wrong := validation.IsDNS1123Subdomain(c.BaseDomain); len(wrong) > 0 {
		r.invalid("baseDomain", c.BaseDomain, "set a domain, such as example.com: "+strings.Join(wrong, ", "))
	} else if domain := c.Domain(); c.Name != "" && len(domain) > 253-len("api-int.") {
		r.invalid("baseDomain", c.BaseDomain, "with the cluster's name it is too long for a DNS name; choose a shorter one")
	}
}

// Pool is a machine pool. Replicas is nil if the file has none.
type Pool struct {
	Name           string `json:"name"`
	Replicas       *int64 `json:"replicas"`
	Architecture   string `json:"architecture"`
	Hyperthreading string `json:"hyperthreading"`
}

// workers is a compute pool: the machine-config server configures its machines.
type workers struct {
	Name         string `json:"name"`
	Replicas     *int64 `json:"replicas"`
	Architecture string `json:"architecture"`
}

// pools requires exactly one control-plane replica, without a default (U-INS-2, U-INS-20).
func (r *reader) pools(c *Config, f *installConfig) {
	switch pool := f.ControlPlane; {
	case pool == nil || pool.Replicas == nil:
		r.required("controlPlane.replicas", "write 1: without it there are 3 control-plane nodes")
	case *pool.Replicas != 1:
		r.invalid("controlPlane.replicas", *pool.Replicas, "a single node has one control-plane replica; write 1, or use openshift-install")
	}
	if f.ControlPlane != nil {
		c.ControlPlane = f.ControlPlane
		r.oneOf("controlPlane.name", c.ControlPlane.Name, "master")
		c.ControlPlane.Name = "master"
		r.oneOf("controlPlane.hyperthreading", c.ControlPlane.Hyperthreading, "Enabled", "Disabled")
	}
	if len(f.Compute) == 0 {
		r.required("compute", "without it there are three workers; write replicas: 0, or the number of workers at the installation")
	}
	for i, pool := range f.Compute {
		at := document.Path("compute[%d]", i).String()
		r.oneOf(at+".name", pool.Name, "worker")
		c.Compute = append(c.Compute, Pool{Name: "worker", Replicas: pool.Replicas, Architecture: pool.Architecture})
		switch {
		case i > 0:
			r.add(field.TooMany(document.Path("compute"), len(f.Compute), 1))
		case pool.Replicas == nil:
			r.required(at+".replicas", "write 0, or the number of workers at the installation: without it there are 3")
		case *pool.Replicas < 0:
			r.invalid(at+".replicas", *pool.Replicas, "write 0 or more")
		case r.Purpose == AllInOne && *pool.Replicas > 0:
			r.invalid(at+".replicas", *pool.Replicas, "an all-in-one node has no workers; write 0")
		}
	}
}

// Install returns the input of the decision about the topology.
func (c *Config) Install() topology.Install {
	install := topology.Install{Platform: c.Platform}
	if c.ControlPlane != nil {
		install.ControlPlane = c.ControlPlane.Replicas
	}
	for _, pool := range c.Compute {
		install.Compute = append(install.Compute, topology.ComputePool{Replicas: pool.Replicas})
	}
	return install
}

// Capabilities are the optional parts of a release that are installed.
type Capabilities struct {
	BaselineCapabilitySet         configv1.ClusterVersionCapabilitySet `json:"baselineCapabilitySet"`
	AdditionalEnabledCapabilities []configv1.ClusterVersionCapability  `json:"additionalEnabledCapabilities"`
}

func (r *reader) choices(c *Config, f *installConfig) {
	r.oneOf("publish", f.Publish, "External")
	r.oneOf("cpuPartitioningMode", string(f.CPUPartitioningMode), string(configv1.CPUPartitioningNone), string(configv1.CPUPartitioningAllNodes))
	c.CPUPartitioning = configv1.CPUPartitioningNone
	if f.CPUPartitioningMode != "" {
		c.CPUPartitioning = f.CPUPartitioningMode
	}
	r.oneOf("featureSet", string(f.FeatureSet), string(configv1.TechPreviewNoUpgrade), string(configv1.DevPreviewNoUpgrade), string(configv1.OKD))
	if f.FIPS && r.Purpose == AllInOne {
		r.forbidden("fips", "without a machine-config operator nothing enables FIPS mode on a node; boot an image that is in FIPS mode")
	}
	if c.Capabilities == nil {
		return
	}
	sets := []string{string(configv1.ClusterVersionCapabilitySetNone), string(configv1.ClusterVersionCapabilitySetCurrent)}
	for set := range configv1.ClusterVersionCapabilitySets {
		sets = append(sets, string(set))
	}
	r.oneOf("capabilities.baselineCapabilitySet", string(c.Capabilities.BaselineCapabilitySet), sets...)
	known := make([]string, len(configv1.KnownClusterVersionCapabilities))
	for i, name := range configv1.KnownClusterVersionCapabilities {
		known[i] = string(name)
	}
	for i, name := range c.Capabilities.AdditionalEnabledCapabilities {
		r.oneOf(document.Path("capabilities.additionalEnabledCapabilities[%d]", i).String(), string(name), known...)
	}
}
