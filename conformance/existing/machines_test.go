// SPDX-License-Identifier: Apache-2.0

package existing

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/solonode/sno/conformance/cluster"
)

// Machines are counted; of a kind that is not served any more there are none. Others, such as Console, never were served.
func TestReadMachines(t *testing.T) {
	kept := admin(t)
	count := func(want int, served bool) {
		t.Helper()
		state, err := cluster.Read(t.Context(), kept, nil)
		if err != nil {
			t.Fatal(err)
		}
		if state.Machines != want || state.Missing["machines.machine.openshift.io"] == served || !state.Missing["consoles.operator.openshift.io"] {
			t.Errorf("%d Machines, want %d; not served: %v", state.Machines, want, state.Missing)
		}
	}
	count(0, true)
	for _, name := range []string{"master-0", "worker-0"} {
		machine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "metadata": map[string]any{"name": name}}}
		if err := kept.Create(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	count(2, true)
	definition := anyKind("machine.openshift.io", "v1beta1", "Machine")
	if err := kept.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	gone := func(ctx context.Context) (bool, error) {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineList"}}
		return apierrors.IsNotFound(kept.List(ctx, list)), nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, gone); err != nil {
		t.Fatal(err)
	}
	count(0, false)
}
