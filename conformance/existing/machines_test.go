// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/solonode/sno/conformance/cluster"
)

// Machines are counted; without the kind the count is 0.
func TestReadMachines(t *testing.T) {
	count := func(kube client.Client) int {
		t.Helper()
		state, err := cluster.Read(t.Context(), kube, nil)
		if err != nil {
			t.Fatal(err)
		}
		return state.Machines
	}
	if got := count(admin(t)); got != 0 {
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
	kept := admin(t)
	if got := count(kept); got != 0 {
		t.Errorf("%d Machines, want none", got)
	}
	for _, name := range []string{"master-0", "worker-0"} {
		machine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": map[string]any{"name": name}}}
		if err := admin(t).Create(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(kept); got != 2 {
		t.Errorf("%d Machines, want 2", got)
	}
	if err := envtest.UninstallCRDs(server.Config, options); err != nil {
		t.Fatal(err)
	}
	gone := func(ctx context.Context) (bool, error) {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineList"}}
		return apierrors.IsNotFound(kept.List(ctx, list)), nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, gone); err != nil {
		t.Fatal(err)
	}
	if got := count(kept); got != 0 {
		t.Errorf("%d Machines of a kind that is not served any more", got)
	}
}
