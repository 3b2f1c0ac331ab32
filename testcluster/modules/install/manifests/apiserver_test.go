// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/install/installconfig"
	"github.com/solonode/sno/install/manifests"
	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/testcluster/apiserver"
)

// An API server accepts every manifest with strict validation, and its status by a separate request.
func TestOnAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	server := apiserver.Start(t, apiserver.Options{CRDs: []string{
		"proxies.config.openshift.io", "apiservers.config.openshift.io", "authentications.config.openshift.io", "dnses.config.openshift.io",
		"featuregates.config.openshift.io", "images.config.openshift.io", "imagedigestmirrorsets.config.openshift.io",
		"infrastructures.config.openshift.io", "ingresses.config.openshift.io", "networks.config.openshift.io", "nodes.config.openshift.io",
		"oauths.config.openshift.io", "schedulers.config.openshift.io", "clusterversions.config.openshift.io",
		"machineconfigs.machineconfiguration.openshift.io",
	}})
	admin := server.Admin(t)
	server.Put(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "openshift-config"}}})
	const file = "testdata/module/installconfig/testdata/install-config.yaml"
	given, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bundle, _, err := cert.GenerateSelfSignedCertKey("ca.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for platform, section := range map[string]string{"none": "none: {}", "external": "external: {platformName: metal, cloudControllerManager: External}"} {
		text := strings.Replace(string(given), "none: {}", section, 1) + "fips: true\ncpuPartitioningMode: AllNodes\n" +
			"capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress, MachineAPI]}\n"
		c, _, err := installconfig.Read(file, []byte(text), installconfig.Options{Purpose: installconfig.SingleNode})
		if err != nil {
			t.Fatal(err)
		}
		c.AdditionalTrustBundle = string(bundle)
		list, err := manifests.Generate(manifests.Input{Config: c, Profile: inputs.OpenShift, ClusterID: "8f1c5f6e-6f0e-4d28-9b0a-3a4f6a3d2b10", InfraID: "sno-x7k2p"})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(f.Content, &o.Object); err != nil {
				t.Fatal(err)
			}
			content := o.DeepCopy()
			if err := admin.Create(t.Context(), content, client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll); err != nil {
				t.Errorf("%s: %s: %v", platform, f.Path, err)
				continue
			}
			if _, has := o.Object["status"]; !has {
				continue
			}
			owner, intent := client.FieldOwner("test"), client.ApplyConfigurationFromUnstructured(o.DeepCopy())
			if err := admin.Apply(t.Context(), intent, owner, client.ForceOwnership); err != nil {
				t.Errorf("%s: %s: %v", platform, f.Path, err)
				continue
			}
			if err := admin.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), owner, client.ForceOwnership); err != nil {
				t.Errorf("%s: status of %s: %v", platform, f.Path, err)
			}
			if err := admin.Delete(t.Context(), o.DeepCopy()); err != nil {
				t.Error(err)
			}
		}
	}
}
