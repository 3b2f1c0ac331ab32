package installconfig

import (
	"regexp"
	"strings"
)

// Effect is what becomes of a field.
type Effect string

// The effects.
const (
	// Honoured: it decides something of the installation.
	Honoured Effect = "honoured"
	// Recorded: operators read it in the ConfigMap cluster-config-v1, and nothing else.
	Recorded Effect = "recorded only"
	// Ignored: a field that is set is a warning.
	Ignored Effect = "ignored, with a warning"
	// Refused: a field that is set is a fault.
	Refused Effect = "refused"
)

// Field is a row of the table of fields.
type Field struct {
	// Path names the field, with [*] for the items of a list. A row of what is ignored or refused covers all that is below it, but for
	// rows of their own.
	Path   string
	Effect Effect
	// Why is what the field decides, or why it decides nothing.
	Why string
}

const (
	cloud      = "bootstrap in place and all-in-one are for machines, not for clouds"
	deprecated = "deprecated for long"
)

// Fields is the table of all fields of openshift-install's install-config.
var Fields = []Field{
	{"apiVersion", Honoured, "must be v1"},
	{"kind", Ignored, "openshift-install does not read it"},
	{"metadata.name", Honoured, "the cluster's name, in its domain and in the infrastructure's name"},
	{"metadata", Ignored, "nothing but the name is used"},
	{"baseDomain", Honoured, "the domain that the cluster's domain is in"},
	{"sshKey", Honoured, "user core's keys, one on each line"},
	{"pullSecret", Honoured, "for pulling images in the live system, and Secret openshift-config/pull-secret"},
	{"additionalTrustBundle", Honoured, "CAs that the live system and the nodes trust, and ConfigMap openshift-config/user-ca-bundle"},
	{"additionalTrustBundlePolicy", Honoured, "Proxyonly: Proxy names the bundle only where there is a proxy; Always"},
	{"proxy.httpProxy", Honoured, "Proxy, and the environment of all units until the nodes' configuration has it"},
	{"proxy.httpsProxy", Honoured, "as httpProxy"},
	{"proxy.noProxy", Honoured, "as httpProxy; what the cluster itself needs is added"},
	{"imageDigestSources[*].source", Honoured, "a repository: ImageDigestMirrorSet, and the registries' configuration of the live system"},
	{"imageDigestSources[*].mirrors", Honoured, "where else its images are"},
	{"imageDigestSources[*].sourcePolicy", Honoured, "NeverContactSource or AllowContactingSource"},
	{"imageContentSources[*].source", Honoured, "the older form of imageDigestSources; not both"},
	{"imageContentSources[*].mirrors", Honoured, "the older form of imageDigestSources; not both"},
	{"networking.networkType", Honoured, "OVNKubernetes, the only one that single nodes have"},
	{"networking.machineNetwork[*].cidr", Honoured, "where the node's addresses are; by default 10.0.0.0/16"},
	{"networking.clusterNetwork[*].cidr", Honoured, "the pods' network; by default 10.128.0.0/14"},
	{"networking.clusterNetwork[*].hostPrefix", Honoured, "a node's share of it; by default 23, for IPv6 64"},
	{"networking.serviceNetwork", Honoured, "by default 172.30.0.0/16"},
	{"networking.clusterNetwork[*].hostSubnetLength", Refused, deprecated + "; use hostPrefix"},
	{"networking.machineCIDR", Refused, deprecated + "; use machineNetwork"},
	{"networking.serviceCIDR", Refused, deprecated + "; use serviceNetwork"},
	{"networking.clusterNetworks", Refused, deprecated + "; use clusterNetwork"},
	{"networking.type", Refused, deprecated + "; use networkType"},
	{"networking.clusterNetworkMTU", Refused, "the network operator's manifest has it: put one of kind Network of operator.openshift.io into manifests/"},
	{"networking.ovnKubernetesConfig", Refused, "the network operator's manifest has it: put one of kind Network of operator.openshift.io into manifests/"},
	{"controlPlane.name", Honoured, "must be master"},
	{"controlPlane.replicas", Honoured, "must be there and 1"},
	{"controlPlane.architecture", Recorded, "the image and the program decide"},
	{"controlPlane.hyperthreading", Honoured, "Disabled: kernel argument nosmt"},
	{"controlPlane.platform", Refused, cloud},
	{"controlPlane.fencing", Refused, "fencing is for two nodes"},
	{"controlPlane.diskSetup", Refused, "put a MachineConfig into openshift/"},
	{"compute[*].name", Honoured, "must be worker"},
	{"compute[*].replicas", Honoured, "workers on the first day: the topology depends on them; all-in-one has none"},
	{"compute[*].architecture", Recorded, "the image decides"},
	{"compute[*].hyperthreading", Ignored, "workers take their configuration from the machine-config server"},
	{"compute[*].platform", Refused, cloud},
	{"compute[*].diskSetup", Refused, "put a MachineConfig into openshift/"},
	{"arbiter", Refused, "an arbiter is for two nodes"},
	{"platform.none", Honoured, "platform None"},
	{"platform.external.platformName", Honoured, "platform External: its name"},
	{"platform.external.cloudControllerManager", Honoured, "platform External: how its cloud controller manager is run"},
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
	{"bootstrapInPlace.installationDisk", Honoured, "what coreos-installer writes to"},
	{"fips", Honoured, "MachineConfigs, profile openshift only; the live system has to be booted with fips=1"},
	{"cpuPartitioningMode", Honoured, "Infrastructure's status.cpuPartitioning"},
	{"capabilities.baselineCapabilitySet", Honoured, "ClusterVersion's spec.capabilities"},
	{"capabilities.additionalEnabledCapabilities", Honoured, "ClusterVersion's spec.capabilities"},
	{"featureSet", Honoured, "FeatureGate"},
	{"featureGates", Refused, "CustomNoUpgrade is refused when static pods are rendered: a wrong gate keeps kube-apiserver from starting"},
	{"publish", Honoured, "must be External or empty: without a cloud there is nothing to hide"},
	{"operatorPublishingStrategy", Refused, cloud},
	{"credentialsMode", Refused, cloud},
	{"osImageStream", Refused, "the image that is written decides"},
}

var index = regexp.MustCompile(`\[\d+\]`)

// rowOf returns the row that covers a path.
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

// covers reports whether the row is about what is below its field by the rest of a path. Of a field that has an effect only the items
// of a list are, so that a misspelled field below it is found.
func (f Field) covers(rest string) bool {
	below := f.Effect == Ignored || f.Effect == Refused
	return rest == "" || rest == "[*]" || (below && (rest[0] == '.' || rest[0] == '['))
}

// leadsToRow reports whether there are rows below a path.
func leadsToRow(path string) bool {
	path = index.ReplaceAllString(path, "[*]")
	for _, f := range Fields {
		if rest, ok := strings.CutPrefix(f.Path, path); ok && rest != "" && (rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
