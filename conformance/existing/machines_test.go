package existing

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/solonode/sno/conformance/checks"
)

// What is read of a cluster counts its Machines; where the kind is not served there are none.
func TestReadMachines(t *testing.T) {
	count := func() int {
		t.Helper()
		kube, err := client.New(server.Config, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		state, err := checks.Read(t.Context(), kube, nil)
		if err != nil {
			t.Fatal(err)
		}
		return state.Machines
	}
	if got := count(); got != 0 {
		t.Errorf("%d Machines of a kind that is not served", got)
	}
	definition := anyKind("Machine")
	definition.Name, definition.Spec.Group, definition.Spec.Versions[0].Name = "machines.machine.openshift.io", "machine.openshift.io", "v1beta1"
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}}
	if _, err := envtest.InstallCRDs(server.Config, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(server.Config, options); err != nil {
			t.Error(err)
		}
	})
	if got := count(); got != 0 {
		t.Errorf("%d Machines, want none", got)
	}
	for _, name := range []string{"master-0", "worker-0"} {
		machine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": map[string]any{"name": name}}}
		if err := admin(t).Create(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(); got != 2 {
		t.Errorf("%d Machines, want 2", got)
	}
}
