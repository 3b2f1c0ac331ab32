// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workv1client "open-cluster-management.io/api/client/work/clientset/versioned/typed/work/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/solonode/sno/fleet"
	"github.com/solonode/sno/fleet/executor"
)

// limited is the client of the add-on framework, which knows no executors: each ManifestWork that it writes gets ours.
type limited struct{ workclient.Interface }

func (c limited) WorkV1() workv1client.WorkV1Interface { return limitedV1{c.Interface.WorkV1()} }

type limitedV1 struct{ workv1client.WorkV1Interface }

func (c limitedV1) ManifestWorks(namespace string) workv1client.ManifestWorkInterface {
	return limitedWorks{c.WorkV1Interface.ManifestWorks(namespace)}
}

type limitedWorks struct {
	workv1client.ManifestWorkInterface
}

func (c limitedWorks) Create(ctx context.Context, work *workv1.ManifestWork, options metav1.CreateOptions) (*workv1.ManifestWork, error) {
	work = work.DeepCopy()
	work.Spec.Executor = executor.Executor()
	return c.ManifestWorkInterface.Create(ctx, work, options)
}

func (c limitedWorks) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*workv1.ManifestWork, error) {
	limit, err := json.Marshal(map[string]any{"spec": map[string]any{"executor": executor.Executor()}})
	if err == nil {
		data, err = jsonpatch.MergeMergePatches(data, limit)
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
