// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/inputs"
	"github.com/solonode/sno/render/rendertest"

	"github.com/solonode/sno/install/manifests"
)

// An API server accepts every manifest with strict validation, and its status by a separate request.
func TestOnAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	server := rendertest.StartServer(t,
		"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml",
		"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml",
	)
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "openshift-config"}}}
	if _, err := server.Resource(t, namespace).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bundle, _, err := cert.GenerateSelfSignedCertKey("ca.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for platform, section := range map[string]string{"none": "none: {}", "external": "external: {platformName: metal, cloudControllerManager: External}"} {
		c := config(t, func(text string) string {
			return strings.Replace(text, "none: {}", section, 1) + "fips: true\ncpuPartitioningMode: AllNodes\n" +
				"capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress, MachineAPI]}\n"
		})
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
			resource := server.Resource(t, o)
			if _, err := resource.Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("%s: %s: %v", platform, f.Path, err)
				continue
			}
			if _, has := o.Object["status"]; !has {
				continue
			}
			if _, err := resource.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
				t.Errorf("%s: %s: %v", platform, f.Path, err)
				continue
			}
			if _, err := resource.ApplyStatus(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
				t.Errorf("%s: status of %s: %v", platform, f.Path, err)
			}
			if err := resource.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
}
