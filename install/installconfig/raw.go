// SPDX-License-Identifier: Apache-2.0

package installconfig

// rawConfig is the file. Fields that are not here have no effect.
type rawConfig struct {
	APIVersion string `yaml:"apiVersion"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	BaseDomain                  string `yaml:"baseDomain"`
	SSHKey                      string `yaml:"sshKey"`
	PullSecret                  string `yaml:"pullSecret"`
	AdditionalTrustBundle       string `yaml:"additionalTrustBundle"`
	AdditionalTrustBundlePolicy string `yaml:"additionalTrustBundlePolicy"`
	Proxy                       *struct {
		HTTPProxy  string `yaml:"httpProxy"`
		HTTPSProxy string `yaml:"httpsProxy"`
		NoProxy    string `yaml:"noProxy"`
	} `yaml:"proxy"`
	ImageDigestSources  []rawSource `yaml:"imageDigestSources"`
	ImageContentSources []rawSource `yaml:"imageContentSources"`
	Networking          struct {
		NetworkType    string `yaml:"networkType"`
		MachineNetwork []struct {
			CIDR string `yaml:"cidr"`
		} `yaml:"machineNetwork"`
		ClusterNetwork []struct {
			CIDR       string `yaml:"cidr"`
			HostPrefix int32  `yaml:"hostPrefix"`
		} `yaml:"clusterNetwork"`
		ServiceNetwork []string `yaml:"serviceNetwork"`
	} `yaml:"networking"`
	ControlPlane *rawPool  `yaml:"controlPlane"`
	Compute      []rawPool `yaml:"compute"`
	Platform     struct {
		None     *struct{} `yaml:"none"`
		External *struct {
			PlatformName           string `yaml:"platformName"`
			CloudControllerManager string `yaml:"cloudControllerManager"`
		} `yaml:"external"`
	} `yaml:"platform"`
	BootstrapInPlace *struct {
		InstallationDisk string `yaml:"installationDisk"`
	} `yaml:"bootstrapInPlace"`
	FIPS                bool   `yaml:"fips"`
	CPUPartitioningMode string `yaml:"cpuPartitioningMode"`
	Capabilities        *struct {
		BaselineCapabilitySet         string   `yaml:"baselineCapabilitySet"`
		AdditionalEnabledCapabilities []string `yaml:"additionalEnabledCapabilities"`
	} `yaml:"capabilities"`
	FeatureSet string `yaml:"featureSet"`
	Publish    string `yaml:"publish"`
}

type rawSource struct {
	Source       string   `yaml:"source"`
	Mirrors      []string `yaml:"mirrors"`
	SourcePolicy string   `yaml:"sourcePolicy"`
}

type rawPool struct {
	Name           string `yaml:"name"`
	Replicas       *int64 `yaml:"replicas"`
	Architecture   string `yaml:"architecture"`
	Hyperthreading string `yaml:"hyperthreading"`
}
