package manifests_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/inputs"

	"github.com/solonode/sno/install/manifests"
)

// definitions are those of what is generated, inside github.com/openshift/api.
var definitions = []string{
	"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_03_config-operator_01_proxies.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_authentications-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_dnses.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_featuregates.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_images.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_ingresses.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_networks.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_nodes-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_oauths.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_schedulers-SelfManagedHA-Default.crd.yaml",
	"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml",
}

// An API server takes every manifest, and knows each of its fields; what has a status takes that by a request of its own.
func TestOnAPIServer(t *testing.T) {
	api, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatalf("find the folder of openshift/api: %v", err)
	}
	environment := &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{ErrorIfPathMissing: true}}
	for _, definition := range definitions {
		environment.CRDInstallOptions.Paths = append(environment.CRDInstallOptions.Paths, filepath.Join(strings.TrimSpace(string(api)), definition))
	}
	server, err := environment.Start()
	if err != nil {
		t.Fatalf("start an API server (KUBEBUILDER_ASSETS names the folder of its programs): %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	server.QPS = -1
	client := dynamic.NewForConfigOrDie(server)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(server)))

	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "openshift-config"}}}
	mapping, err := mapper.RESTMapping(namespace.GroupVersionKind().GroupKind(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(mapping.Resource).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
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
			gvk := o.GroupVersionKind()
			mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
			if err != nil {
				t.Errorf("%s: %s: %v", platform, f.Path, err)
				continue
			}
			resource := client.Resource(mapping.Resource).Namespace(o.GetNamespace())
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
