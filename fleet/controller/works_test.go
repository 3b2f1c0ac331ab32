// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workfake "open-cluster-management.io/api/client/work/clientset/versioned/fake"
	worklisters "open-cluster-management.io/api/client/work/listers/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	workapplier "open-cluster-management.io/sdk-go/pkg/apis/work/v1/applier"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/executor"
)

func newWork(manifest string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "east-1", Name: "addon-sno-deploy-0", Labels: map[string]string{addonv1alpha1.AddonLabelKey: fleet.AddOn}}}
	w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	return w
}

// The framework's own applier writes our executor, again if somebody removes it, and nothing at rest.
func TestExecutorOfEveryWork(t *testing.T) {
	const one, two = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"}}`
	client := workfake.NewSimpleClientset()
	works := client.WorkV1().ManifestWorks("east-1")
	client.PrependReactor("patch", "manifestworks", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if data := action.(clienttesting.PatchAction).GetPatch(); bytes.Contains(data, []byte("resourceVersion")) || !bytes.Contains(data, []byte(`"uid"`)) {
			t.Errorf("a status that was written meanwhile would refuse %s", data)
		}
		return false, nil, nil
	})
	apply := func(manifest string) (writes int) {
		t.Helper()
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		if live, err := works.Get(t.Context(), "addon-sno-deploy-0", metav1.GetOptions{}); err == nil {
			live.UID, live.ResourceVersion = "u", "1"
			cached, err := asWritten(live.DeepCopy())
			if err != nil || indexer.Add(cached) != nil {
				t.Fatal(err)
			}
		}
		client.ClearActions()
		applier := workapplier.NewWorkApplierWithTypedClient(limited{client, executor.Executor()}, worklisters.NewManifestWorkLister(indexer))
		if _, err := applier.Apply(t.Context(), newWork(manifest)); err != nil {
			t.Fatal(err)
		}
		writes = len(client.Actions())
		live, err := works.Get(t.Context(), "addon-sno-deploy-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(executor.Executor(), live.Spec.Executor); diff != "" || string(live.Spec.Workload.Manifests[0].Raw) != manifest {
			t.Errorf("%s: (-want +got):\n%s", live.Spec.Workload.Manifests[0].Raw, diff)
		}
		return writes
	}
	if n := apply(one); n != 1 {
		t.Errorf("%d writes to create", n)
	}
	if n := apply(one); n != 0 {
		t.Errorf("%d writes at rest", n)
	}
	if n := apply(two); n != 1 {
		t.Errorf("%d writes of a change", n)
	}
	for _, other := range []*workv1.ManifestWorkExecutor{nil, {Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "a", Name: "b"},
	}}} {
		live, err := works.Get(t.Context(), "addon-sno-deploy-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		live.Spec.Executor = other
		if _, err := works.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if n := apply(two); n != 1 {
			t.Errorf("%d writes to repair the executor %v", n, other)
		}
	}
}
