package rotate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Changes returns the objects that the later result has and the earlier one has not, or has otherwise, as "KIND NAMESPACE/NAME",
// sorted. What a server owns does not count.
func Changes(earlier, later []runtime.Object) ([]string, error) {
	before := map[string]runtime.Object{}
	for _, object := range earlier {
		name, bare, err := ours(object)
		if err != nil {
			return nil, err
		}
		before[name] = bare
	}
	var changed []string
	for _, object := range later {
		name, bare, err := ours(object)
		if err != nil {
			return nil, err
		}
		if old, existed := before[name]; !existed || !equality.Semantic.DeepEqual(old, bare) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed, nil
}

// ours returns the name of an object and a copy without what a server owns.
func ours(object runtime.Object) (string, runtime.Object, error) {
	bare := object.DeepCopyObject()
	m, err := meta.Accessor(bare)
	if err != nil {
		return "", nil, fmt.Errorf("compare %T: %w", object, err)
	}
	name := bare.GetObjectKind().GroupVersionKind().Kind + " " + m.GetNamespace() + "/" + m.GetName()
	if m.GetNamespace() == "" {
		name = bare.GetObjectKind().GroupVersionKind().Kind + " " + m.GetName()
	}
	m.SetResourceVersion("")
	m.SetUID("")
	m.SetGeneration(0)
	m.SetManagedFields(nil)
	m.SetOwnerReferences(nil)
	m.SetCreationTimestamp(metav1.Time{})
	return name, bare, nil
}
