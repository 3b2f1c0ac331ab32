// SPDX-License-Identifier: Apache-2.0

package rendertest

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

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

// Server is a real API server with OpenShift's resources.
type Server struct {
	Config *rest.Config
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

// StartServer starts a server from KUBEBUILDER_ASSETS. further lists more CRDs inside github.com/openshift/api.
func StartServer(t *testing.T, further ...string) Server {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatalf("find the folder of openshift/api: %v", err)
	}
	environment := &envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{ErrorIfPathMissing: true}}
	for _, definition := range slices.Concat(definitions, further) {
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
	client := memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config))
	return Server{config, dynamic.NewForConfigOrDie(config), restmapper.NewDeferredDiscoveryRESTMapper(client)}
}

// Resource returns a client for the object's resource and namespace.
func (s Server) Resource(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	// Discovery lists a CRD's resource with a delay.
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		var err error
		mapping, err = s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			s.mapper.Reset()
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatalf("find the resource of %s: %v", gvk, err)
	}
	return s.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
}
