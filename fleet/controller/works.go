// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workv1client "open-cluster-management.io/api/client/work/clientset/versioned/typed/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/executor"
)

// limited is the client by which the add-on framework and we write ManifestWorks: each gets the executor, which the
// framework does not know. A patch is not refused because the work agent has written the status meanwhile.
type limited struct {
	workclient.Interface
	executor *workv1.ManifestWorkExecutor // nil leaves it as it is
}

func (c limited) WorkV1() workv1client.WorkV1Interface {
	return limitedV1{c.Interface.WorkV1(), c.executor}
}

type limitedV1 struct {
	workv1client.WorkV1Interface
	executor *workv1.ManifestWorkExecutor
}

func (c limitedV1) ManifestWorks(namespace string) workv1client.ManifestWorkInterface {
	return limitedWorks{c.WorkV1Interface.ManifestWorks(namespace), c.executor}
}

type limitedWorks struct {
	workv1client.ManifestWorkInterface
	executor *workv1.ManifestWorkExecutor
}

func (c limitedWorks) Create(ctx context.Context, work *workv1.ManifestWork, options metav1.CreateOptions) (*workv1.ManifestWork, error) {
	if c.executor != nil {
		work = work.DeepCopy()
		work.Spec.Executor = c.executor
	}
	return c.ManifestWorkInterface.Create(ctx, work, options)
}

func (c limitedWorks) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*workv1.ManifestWork, error) {
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(change, "metadata", "resourceVersion")
	data, err := json.Marshal(change)
	if err == nil && c.executor != nil {
		var limit []byte
		limit, err = json.Marshal(map[string]any{"spec": map[string]any{"executor": c.executor}})
		if err == nil {
			data, err = jsonpatch.MergeMergePatches(data, limit)
		}
	}
	if err != nil {
		return nil, err
	}
	return c.ManifestWorkInterface.Patch(ctx, name, kind, data, options, subresources...)
}

// asWritten prepares a ManifestWork for the cache of the framework, which compares it with what it would write: without
// our executor if that is there, and otherwise with one that makes the framework write.
func asWritten(object any) (any, error) {
	work, ok := object.(*workv1.ManifestWork)
	if !ok {
		return object, nil
	}
	work.ManagedFields = nil
	if work.Labels[addonv1alpha1.AddonLabelKey] != fleet.AddOn {
		return work, nil
	}
	if reflect.DeepEqual(work.Spec.Executor, executor.Executor()) {
		work.Spec.Executor = nil
	} else {
		work.Spec.Executor = &workv1.ManifestWorkExecutor{}
	}
	return work, nil
}
