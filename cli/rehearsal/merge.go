// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	configac "github.com/openshift/client-go/config/applyconfigurations"
	mcfgac "github.com/openshift/client-go/machineconfiguration/applyconfigurations"
	operatorac "github.com/openshift/client-go/operator/applyconfigurations"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreac "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// converters contain the schemas by which an API server merges. The last one deduces the schema of any kind.
var converters = sync.OnceValue(func() []managedfields.TypeConverter {
	kinds := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, operatorv1.Install, mcfgv1.Install} {
		utilruntime.Must(install(kinds))
	}
	return []managedfields.TypeConverter{
		coreac.NewTypeConverter(kinds), configac.NewTypeConverter(kinds), operatorac.NewTypeConverter(kinds), mcfgac.NewTypeConverter(kinds),
		managedfields.NewDeducedTypeConverter(),
	}
})

// applied returns the object, or a conflict, after a server-side apply. On an object without managedFields nothing
// conflicts.
func applied(live, body *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	if live == nil {
		live = &unstructured.Unstructured{}
		live.SetGroupVersionKind(body.GroupVersionKind())
	} else if len(live.GetManagedFields()) == 0 {
		force = true
	}
	body = body.DeepCopy()
	body.SetResourceVersion("")
	after, err := merged(body.GroupVersionKind(), func(by *managedfields.FieldManager) (runtime.Object, error) {
		return by.Apply(live.DeepCopy(), body.DeepCopy(), manager, force)
	})
	if err == nil {
		prune(after.Object, body.Object)
	}
	return after, err
}

// merged tries all converters: a cluster may have fields that are newer than this build.
func merged(gvk schema.GroupVersionKind, do func(*managedfields.FieldManager) (runtime.Object, error)) (*unstructured.Unstructured, error) {
	var failed error
	for _, known := range converters() {
		as := unconverted{runtime.NewScheme()}
		manager, err := managedfields.NewDefaultCRDFieldManager(known, as, as, as, gvk, gvk.GroupVersion(), "", nil)
		if err != nil {
			return nil, fmt.Errorf("merging %s: %w", gvk.Kind, err)
		}
		object, err := do(manager)
		if u, ok := object.(*unstructured.Unstructured); ok && err == nil {
			return u, nil
		}
		if apierrors.IsConflict(err) {
			return nil, err
		}
		failed = err
	}
	return nil, fmt.Errorf("merging %s: %w", gvk.Kind, failed)
}

func prune(object, intent map[string]any) {
	for name, wanted := range intent {
		if wanted == nil {
			delete(object, name)
			continue
		}
		below, isMap := wanted.(map[string]any)
		if has, found := object[name].(map[string]any); isMap && found {
			prune(has, below)
		}
	}
}

// patched returns the object after a merge patch. Modules use no other patches.
func patched(live *unstructured.Unstructured, object client.Object, patch client.Patch, manager string) (*unstructured.Unstructured, error) {
	if patch.Type() != types.MergePatchType {
		return nil, fmt.Errorf("%w: a patch of type %s", ErrUnsupported, patch.Type())
	}
	data, err := patch.Data(object)
	if err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	after := &unstructured.Unstructured{}
	text, err := live.MarshalJSON()
	if err == nil {
		text, err = jsonpatch.MergePatch(text, data)
	}
	if err == nil {
		err = after.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("patching %s %s: %w", live.GetKind(), live.GetName(), err)
	}
	if err := precondition(live, live, after.GetUID(), after.GetResourceVersion()); err != nil {
		return nil, err
	}
	return merged(live.GroupVersionKind(), func(by *managedfields.FieldManager) (runtime.Object, error) {
		return by.Update(live.DeepCopy(), after.DeepCopy(), manager)
	})
}

// unconverted keeps objects in the version in which they were read.
type unconverted struct{ *runtime.Scheme }

func (unconverted) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (unconverted) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
