package rehearsal

import (
	"cmp"
	"encoding/json"
	"errors"
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
	coreac "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// ErrNotLive is the cause of a conflict with the object as it is.
var ErrNotLive = errors.New("the object is another one")

// errPatch is returned for a patch of a kind that no module sends.
var errPatch = errors.New("unknown kind of patch")

var compare = cmp.Compare[string]

// fieldSchema is how the fields of the kinds of a scheme are merged. It is large, so it is read when it is needed first.
type fieldSchema struct {
	kinds     *runtime.Scheme
	converter func() managedfields.TypeConverter
}

// converters are what is known of how fields are merged; what they do not know is merged as if it had no schema.
type converters []fieldSchema

// newConverters is called once.
var newConverters = sync.OnceValues(func() (converters, error) {
	known := converters{{clientgoscheme.Scheme, lazily(coreac.NewTypeConverter, clientgoscheme.Scheme)}}
	for _, of := range []struct {
		install func(*runtime.Scheme) error
		made    func(*runtime.Scheme) managedfields.TypeConverter
	}{{configv1.Install, configac.NewTypeConverter}, {operatorv1.Install, operatorac.NewTypeConverter}, {mcfgv1.Install, mcfgac.NewTypeConverter}} {
		kinds := runtime.NewScheme()
		if err := of.install(kinds); err != nil {
			return nil, fmt.Errorf("building a scheme: %w", err)
		}
		known = append(known, fieldSchema{kinds, lazily(of.made, kinds)})
	}
	return known, nil
})

func lazily(made func(*runtime.Scheme) managedfields.TypeConverter, kinds *runtime.Scheme) func() managedfields.TypeConverter {
	return sync.OnceValue(func() managedfields.TypeConverter { return made(kinds) })
}

// of lists the converters for the kind, the one with most knowledge first.
func (c converters) of(gvk schema.GroupVersionKind) []managedfields.TypeConverter {
	var all []managedfields.TypeConverter
	for _, s := range c {
		if s.kinds.Recognizes(gvk) {
			all = append(all, s.converter())
		}
	}
	return append(all, managedfields.NewDeducedTypeConverter())
}

// apply is the live object after a server-side apply of the body by the manager; live is nil where there is none. A conflict is the
// API server's own error. An object without managedFields, as somebody may have stripped it, has no owners, so nobody objects.
func (c converters) apply(live, body *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	start := live
	if live == nil {
		start = &unstructured.Unstructured{}
		start.SetGroupVersionKind(body.GroupVersionKind())
	} else if len(live.GetManagedFields()) == 0 {
		force = true
	}
	body = body.DeepCopy()
	unstructured.RemoveNestedField(body.Object, "metadata", "resourceVersion")
	after, err := c.each(body.GroupVersionKind(), func(by *managedfields.FieldManager) (runtime.Object, error) {
		return by.Apply(start.DeepCopy(), body.DeepCopy(), manager, force)
	})
	if err == nil {
		prune(after.Object, body.Object)
	}
	return after, err
}

// update notes whose the changed fields are.
func (c converters) update(live, after *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	return c.each(live.GroupVersionKind(), func(by *managedfields.FieldManager) (runtime.Object, error) {
		return by.Update(live.DeepCopy(), after.DeepCopy(), manager)
	})
}

// each tries the converters until one knows every field: a cluster may have some that this build does not know.
func (c converters) each(gvk schema.GroupVersionKind, do func(*managedfields.FieldManager) (runtime.Object, error)) (*unstructured.Unstructured, error) {
	var failed error
	for _, known := range c.of(gvk) {
		manager, err := managedfields.NewDefaultCRDFieldManager(known, same{}, same{}, same{}, gvk, gvk.GroupVersion(), "", nil)
		if err != nil {
			return nil, fmt.Errorf("merging %s: %w", gvk.Kind, err)
		}
		merged, err := do(manager)
		if u, ok := merged.(*unstructured.Unstructured); ok && err == nil {
			return u, nil
		}
		if apierrors.IsConflict(err) {
			return nil, err
		}
		failed = err
	}
	return nil, fmt.Errorf("merging %s: %w", gvk.Kind, failed)
}

// prune removes from the object what is null in the intent: that is how an intent has a field absent.
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

func patchJSON(live *unstructured.Unstructured, kind types.PatchType, data []byte) (*unstructured.Unstructured, error) {
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	var patched []byte
	switch kind {
	case types.MergePatchType:
		patched, err = jsonpatch.MergePatch(before, data)
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(data); err == nil {
			patched, err = patch.Apply(before)
		}
	default:
		err = fmt.Errorf("%w: %s", errPatch, kind)
	}
	if err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(patched)
}

// same converts nothing: every object stays in the version in which it was read.
type same struct{}

func (same) Convert(_, _, _ any) error { return errPatch }

func (same) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (same) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (same) Default(runtime.Object) {}

func (same) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
