package export

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/solonode/sno/render/files"
)

// definitions are the definitions of resources that a render has, inside github.com/openshift/api.
var definitions = []string{
	"config/v1/zz_generated.crd-manifests/0000_03_config-operator_01_proxies.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_authentications-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_dnses.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_featuregates.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_images.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_ingresses.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_networks.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_nodes-Default.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_oauths.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_schedulers-SelfManagedHA-Default.crd.yaml",
	"operator/v1/zz_generated.crd-manifests/0000_12_etcd_01_etcds-Default.crd.yaml",
	"operator/v1/zz_generated.crd-manifests/0000_20_kube-apiserver_01_kubeapiservers-Default.crd.yaml",
	"operator/v1/zz_generated.crd-manifests/0000_25_kube-controller-manager_01_kubecontrollermanagers.crd.yaml",
	"operator/v1/zz_generated.crd-manifests/0000_25_kube-scheduler_01_kubeschedulers.crd.yaml",
}

// server is a real API server with the definitions.
type server struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func start(t *testing.T) server {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatalf("find the folder of openshift/api: %v", err)
	}
	environment := &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{ErrorIfPathMissing: true}}
	for _, definition := range definitions {
		environment.CRDInstallOptions.Paths = append(environment.CRDInstallOptions.Paths, filepath.Join(strings.TrimSpace(string(folder)), definition))
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start an API server (KUBEBUILDER_ASSETS names the folder of its programs): %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	config.QPS = -1
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
	if err != nil {
		t.Fatal(err)
	}
	return server{dynamic.NewForConfigOrDie(config), restmapper.NewDiscoveryRESTMapper(groups)}
}

func (s server) resource(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	return s.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

// TestOnAPIServer creates manifests that were written and read back: the API server takes each of them in their order, first as a dry
// run, with no field that it does not know, and has all that they say afterwards, their statuses by a second request.
//
// R-REN-7.
func TestOnAPIServer(t *testing.T) {
	t.Parallel()
	server := start(t)
	dir := filepath.Join(t.TempDir(), "manifests")
	if err := files.Write(dir, Files(manifests(t, small()))); err != nil {
		t.Fatal(err)
	}
	all := manifests(t, read(t, dir))
	strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	for _, manifest := range all {
		if manifest.Object.GetKind() == "Namespace" {
			if _, err := server.resource(t, manifest.Object).Create(t.Context(), manifest.Object, strict); err != nil {
				t.Fatal(err)
			}
		}
	}
	dry := strict
	dry.DryRun = []string{metav1.DryRunAll}
	for _, manifest := range all {
		if manifest.Object.GetKind() != "Namespace" {
			if _, err := server.resource(t, manifest.Object).Create(t.Context(), manifest.Object, dry); err != nil {
				t.Errorf("dry run of %s: %v", manifest.Name, err)
			}
		}
	}
	if t.Failed() {
		t.FailNow()
	}

	for _, manifest := range all {
		resource := server.resource(t, manifest.Object)
		if manifest.Object.GetKind() != "Namespace" {
			if _, err := resource.Create(t.Context(), manifest.Object, strict); err != nil {
				t.Errorf("create %s: %v", manifest.Name, err)
				continue
			}
		}
		for _, request := range manifest.StatusRequests() {
			if _, err := resource.ApplyStatus(t.Context(), request.GetName(), request, metav1.ApplyOptions{FieldManager: "sno-render"}); err != nil {
				t.Errorf("status of %s: %v", manifest.Name, err)
			}
		}
		live, err := resource.Get(t.Context(), manifest.Object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("get %s: %v", manifest.Name, err)
			continue
		}
		if diff := cmp.Diff(manifest.Object.Object, common(manifest.Object.Object, live.Object)); diff != "" {
			t.Errorf("%s (-manifest +API server):\n%s", manifest.Name, diff)
		}
	}
}

func read(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	objects, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// common returns what an object of the API server has of the fields of a manifest. What the server adds is left out.
func common(manifest, live any) any {
	switch manifest := manifest.(type) {
	case map[string]any:
		liveMap, ok := live.(map[string]any)
		if !ok {
			return live
		}
		both := map[string]any{}
		for key, value := range manifest {
			if liveValue, ok := liveMap[key]; ok {
				both[key] = common(value, liveValue)
			}
		}
		return both
	case []any:
		liveList, ok := live.([]any)
		if !ok || len(liveList) != len(manifest) {
			return live
		}
		both := make([]any, len(manifest))
		for i := range manifest {
			both[i] = common(manifest[i], liveList[i])
		}
		return both
	}
	return live
}
