// SPDX-License-Identifier: Apache-2.0

package installconfig

import (
	"regexp"
	"strings"
)

// Effect is the effect of a field.
type Effect string

// Effects.
const (
	// Honoured fields have an effect on the installation.
	Honoured Effect = "honoured"
	// Recorded fields are only in ConfigMap cluster-config-v1, for operators.
	Recorded Effect = "recorded only"
	// Ignored fields cause a warning if they are set.
	Ignored Effect = "ignored"
	// Refused fields are an error if they are set.
	Refused Effect = "refused"
)

// Field is a row of the table of fields.
type Field struct {
	// Path of the field, with [*] for the items of a list. A row with effect Ignored or Refused covers the fields below
	// it, except those with rows of their own.
	Path   string
	Effect Effect
	// Why is the effect of the field, or the reason why it has none.
	Why string
}

const (
	cloud      = "bootstrap in place and all-in-one are for machines, not for clouds"
	deprecated = "deprecated for a long time"
)

// Fields is the table of all fields of openshift-install's install-config.
var Fields = []Field{
	{"apiVersion", Honoured, "must be v1"},
	{"kind", Ignored, "openshift-install does not read it"},
	{"metadata.name", Honoured, "the cluster's name, in its domain and in the infrastructure's name"},
	{"metadata", Ignored, "only the name is used"},
	{"baseDomain", Honoured, "the parent of the cluster's domain"},
	{"sshKey", Honoured, "SSH keys of user core, one on each line"},
	{"pullSecret", Honoured, "for pulling images in the live system, and Secret openshift-config/pull-secret"},
	{"additionalTrustBundle", Honoured, "CAs that the live system and the nodes trust, and ConfigMap openshift-config/user-ca-bundle"},
	{"additionalTrustBundlePolicy", Honoured, "Proxyonly: Proxy refers to the bundle only if a proxy is set; Always"},
	{"proxy.httpProxy", Honoured, "an http URL: Proxy, and the environment of all units until the machine-config operator sets it"},
	{"proxy.httpsProxy", Honoured, "an http or https URL; else as httpProxy"},
	{"proxy.noProxy", Honoured, "as httpProxy; * alone, or domains, IPv4 addresses and CIDRs; the cluster's own names and networks are added"},
	{"imageDigestSources[*].source", Honoured, "a repository or registry without a scheme: ImageDigestMirrorSet, and the registries' configuration of the live system"},
	{"imageDigestSources[*].mirrors", Honoured, "mirrors of the repository"},
	{"imageDigestSources[*].sourcePolicy", Honoured, "NeverContactSource or AllowContactingSource"},
	{"imageContentSources[*].source", Honoured, "the older form of imageDigestSources; not both"},
	{"imageContentSources[*].mirrors", Honoured, "the older form of imageDigestSources; not both"},
	{"networking.networkType", Honoured, "OVNKubernetes, the only supported type"},
	{"networking.machineNetwork[*].cidr", Honoured, "network of the node's addresses; by default 10.0.0.0/16; no overlap with the others, and with those of OVN-Kubernetes itself"},
	{"networking.clusterNetwork[*].cidr", Honoured, "network of pods; by default 10.128.0.0/14"},
	{"networking.clusterNetwork[*].hostPrefix", Honoured, "prefix length of a node's range; by default 23, for IPv6 64"},
	{"networking.serviceNetwork", Honoured, "network of Services; by default 172.30.0.0/16"},
	{"networking.clusterNetwork[*].hostSubnetLength", Refused, deprecated + "; use hostPrefix"},
	{"networking.machineCIDR", Refused, deprecated + "; use machineNetwork"},
	{"networking.serviceCIDR", Refused, deprecated + "; use serviceNetwork"},
	{"networking.clusterNetworks", Refused, deprecated + "; use clusterNetwork"},
	{"networking.type", Refused, deprecated + "; use networkType"},
	{"networking.clusterNetworkMTU", Refused, "set it in a manifest of kind Network of operator.openshift.io in manifests/"},
	{"networking.ovnKubernetesConfig", Refused, "set it in a manifest of kind Network of operator.openshift.io in manifests/"},
	{"controlPlane.name", Honoured, "must be master"},
	{"controlPlane.replicas", Honoured, "required, must be 1"},
	{"controlPlane.architecture", Recorded, "decided by the image and the program"},
	{"controlPlane.hyperthreading", Honoured, "Disabled: kernel argument nosmt"},
	{"controlPlane.platform", Refused, cloud},
	{"controlPlane.fencing", Refused, "fencing is for clusters of two nodes"},
	{"controlPlane.diskSetup", Refused, "put a MachineConfig into openshift/"},
	{"compute[*].name", Honoured, "must be worker"},
	{"compute[*].replicas", Honoured, "number of workers at the installation, which decides the topology; 0 for all-in-one"},
	{"compute[*].architecture", Recorded, "decided by the image"},
	{"compute[*].hyperthreading", Ignored, "the machine-config server configures workers"},
	{"compute[*].platform", Refused, cloud},
	{"compute[*].diskSetup", Refused, "put a MachineConfig into openshift/"},
	{"arbiter", Refused, "an arbiter is for clusters of two nodes"},
	{"platform.none", Honoured, "platform None"},
	{"platform.external.platformName", Honoured, "platform External: its name"},
	{"platform.external.cloudControllerManager", Honoured, "platform External: External or empty"},
	{"platform.baremetal", Refused, "it needs several control-plane nodes and addresses of its own; use none"},
	{"platform.aws", Refused, cloud},
	{"platform.alibabacloud", Refused, cloud},
	{"platform.azure", Refused, cloud},
	{"platform.gcp", Refused, cloud},
	{"platform.ibmcloud", Refused, cloud},
	{"platform.libvirt", Refused, "use none"},
	{"platform.nutanix", Refused, cloud},
	{"platform.openstack", Refused, cloud},
	{"platform.ovirt", Refused, cloud},
	{"platform.powervs", Refused, cloud},
	{"platform.vsphere", Refused, cloud},
	{"bootstrapInPlace.installationDisk", Honoured, "the one device that coreos-installer writes"},
	{"fips", Honoured, "MachineConfigs, profile openshift only; the live system has to be booted with fips=1"},
	{"cpuPartitioningMode", Honoured, "Infrastructure's status.cpuPartitioning"},
	{"capabilities.baselineCapabilitySet", Honoured, "ClusterVersion's spec.capabilities"},
	{"capabilities.additionalEnabledCapabilities", Honoured, "ClusterVersion's spec.capabilities"},
	{"featureSet", Honoured, "FeatureGate"},
	{"featureGates", Refused, "CustomNoUpgrade is not supported for static pods: kube-apiserver does not start with a wrong gate"},
	{"publish", Honoured, "must be External or empty: Internal needs a cloud"},
	{"operatorPublishingStrategy", Refused, cloud},
	{"credentialsMode", Refused, cloud},
	{"osImageStream", Refused, "decided by the image that is written"},
}

var index = regexp.MustCompile(`\[\d+\]`)

func rowOf(path string) (Field, bool) {
	path = index.ReplaceAllString(path, "[*]")
	best, found := Field{}, false
	for _, f := range Fields {
		if rest, ok := strings.CutPrefix(path, f.Path); ok && f.covers(rest) && (!found || len(f.Path) > len(best.Path)) {
			best, found = f, true
		}
	}
	return best, found
}

// covers reports whether the row covers the rest of a path below its field. If the field has an effect, it covers only
// items of a list, so that misspelled fields are found.
func (f Field) covers(rest string) bool {
	below := f.Effect == Ignored || f.Effect == Refused
	return rest == "" || rest == "[*]" || (below && (rest[0] == '.' || rest[0] == '['))
}

// inAnotherCase returns the name of a field that differs from the last part of the path by case only.
func inAnotherCase(path string) string {
	path = index.ReplaceAllString(path, "[*]")
	for _, f := range Fields {
		if len(f.Path) < len(path) || !strings.EqualFold(f.Path[:len(path)], path) {
			continue
		}
		if rest := f.Path[len(path):]; rest == "" || rest[0] == '.' || rest[0] == '[' {
			return f.Path[strings.LastIndexByte(path, '.')+1 : len(path)]
		}
	}
	return ""
}
