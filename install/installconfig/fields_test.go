package installconfig

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/install-fields.md")

const fieldsHead = `# Fields of install-config.yaml

Written by ` + "`go test ./installconfig -update`" + ` in install; a test compares. A field that is not here is an error.
A row of a refused or ignored field covers those below it, unless they have rows of their own. A refused field that is set is an error too, and an ignored one is a warning. *Recorded only*: it has no
effect on the installation, and operators may read it in ConfigMap kube-system/cluster-config-v1. The file stays where it is.

`

// The page is the table that decides (R-BIP-27).
func TestFieldsPage(t *testing.T) {
	const page = "../../docs/install-fields.md"
	want := fieldsHead + "| field | effect | what it decides, or why nothing |\n|---|---|---|\n"
	for _, f := range Fields {
		want += fmt.Sprintf("| `%s` | %s | %s |\n", f.Path, f.Effect, f.Why)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run `go test ./installconfig -update` in install; the page is not what the table says (-table +page):\n%s", diff)
	}
}

// upstream are the fields of openshift-install's InstallConfig, one level below those that have levels.
const upstream = `apiVersion kind metadata additionalTrustBundle additionalTrustBundlePolicy sshKey baseDomain pullSecret proxy.httpProxy proxy.httpsProxy proxy.noProxy
networking.networkType networking.machineNetwork[0].cidr networking.clusterNetwork[0].cidr networking.clusterNetwork[0].hostPrefix
networking.clusterNetwork[0].hostSubnetLength networking.serviceNetwork[0] networking.machineCIDR networking.type networking.serviceCIDR
networking.clusterNetworks[0] networking.clusterNetworkMTU networking.ovnKubernetesConfig.ipv4.internalJoinSubnet
controlPlane.name controlPlane.replicas controlPlane.platform.aws controlPlane.hyperthreading controlPlane.architecture controlPlane.fencing.credentials[0] controlPlane.diskSetup[0]
arbiter.name compute[1].name compute[1].replicas compute[1].platform compute[1].hyperthreading compute[1].architecture compute[1].diskSetup[0]
platform.alibabacloud platform.aws platform.azure platform.baremetal platform.external.platformName platform.external.cloudControllerManager platform.gcp platform.ibmcloud
platform.libvirt platform.none platform.nutanix platform.openstack platform.ovirt platform.powervs platform.vsphere
imageContentSources[0].source imageContentSources[0].mirrors[0] imageDigestSources[0].source imageDigestSources[0].mirrors[0] imageDigestSources[0].sourcePolicy
publish operatorPublishingStrategy.apiserver operatorPublishingStrategy.ingress fips cpuPartitioningMode credentialsMode bootstrapInPlace.installationDisk
capabilities.baselineCapabilitySet capabilities.additionalEnabledCapabilities[0] featureSet featureGates[0] osImageStream`

// Each of upstream's fields has a row, and each row is of one of them, so none is unknown and none is forgotten.
func TestEveryField(t *testing.T) {
	used := map[string]bool{}
	for path := range strings.FieldsSeq(upstream) {
		row, found := rowOf(path)
		if !found {
			t.Errorf("%s has no row", path)
		}
		used[row.Path] = true
	}
	for _, f := range Fields {
		if !used[f.Path] && f.Path != "metadata.name" {
			t.Errorf("%s is no field of openshift-install", f.Path)
		}
		if f.Why == "" || strings.Contains(f.Why, "|") {
			t.Errorf("%s: reason %q", f.Path, f.Why)
		}
	}
}
