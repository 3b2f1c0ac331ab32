// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"go.yaml.in/yaml/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"

	"github.com/solonode/sno/render/files"
)

// Errors of the export.
var (
	ErrNoNamespace = errors.New("its namespace is not among the objects")
	ErrUnknownKind = errors.New("unknown apiVersion and kind")
	ErrNoName      = errors.New("no name")
	ErrDuplicate   = errors.New("duplicate object")
)

// FileMode is the mode of all manifests, because some are Secrets.
const FileMode fs.FileMode = 0o600

// Manifest is an object and its file.
type Manifest struct {
	// Name is number, namespace, kind and name, with the extension .yaml.
	Name    string
	Content []byte
	Object  *unstructured.Unstructured
	// Statuses are the bodies of StatusRequests as YAML.
	Statuses [][]byte
}

var builtIn = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetes.AddToScheme, apiextensionsv1.AddToScheme, configv1.Install, operatorv1.Install} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}()

// Manifests returns the manifests in the order in which they can be created, independent of the input's order
// (R-REN-7).
func Manifests(objects []runtime.Object) ([]Manifest, error) {
	var clean []*unstructured.Unstructured
	namespaces := slices.Clone(builtIn)
	var errs []error
	for _, object := range objects {
		content, err := toManifest(object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		clean = append(clean, content)
		if content.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() {
			namespaces = append(namespaces, content.GetName())
		}
	}
	slices.SortFunc(clean, compare)
	for i, object := range clean {
		if i > 0 && compare(clean[i-1], object) == 0 {
			errs = append(errs, fmt.Errorf("export %s: %w", describe(object), ErrDuplicate))
		}
		if namespace := object.GetNamespace(); namespace != "" && !slices.Contains(namespaces, namespace) {
			errs = append(errs, fmt.Errorf("export %s: %w", describe(object), ErrNoNamespace))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	manifests := make([]Manifest, len(clean))
	for i, object := range clean {
		// sigs.k8s.io/yaml converts from JSON, which does not escape some control characters as YAML requires.
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("export %s: %w", describe(object), err)
		}
		manifests[i] = Manifest{Name: fileName(i, object), Content: content, Object: object}
		for _, request := range manifests[i].StatusRequests() {
			content, err := yaml.Marshal(request.Object)
			if err != nil {
				return nil, fmt.Errorf("export the status of %s: %w", describe(object), err)
			}
			manifests[i].Statuses = append(manifests[i].Statuses, content)
		}
	}
	return manifests, nil
}

// StatusDir is the folder of the bodies of requests to status subresources.
const StatusDir = "status"

// Files returns the manifests as files, with StatusRequests in StatusDir.
func Files(manifests []Manifest) []files.File {
	var all []files.File
	for _, manifest := range manifests {
		all = append(all, files.File{Path: manifest.Name, Mode: FileMode, Content: manifest.Content})
		for i, content := range manifest.Statuses {
			name := fmt.Sprintf("%s/%s-%d.yaml", StatusDir, strings.TrimSuffix(manifest.Name, ".yaml"), i+1)
			all = append(all, files.File{Path: name, Mode: FileMode, Content: content})
		}
	}
	return all
}

// fileName returns a name without characters that some file systems and archives reject.
func fileName(index int, object *unstructured.Unstructured) string {
	parts := []string{fmt.Sprintf("%04d", index+1)}
	if object.GetNamespace() != "" {
		parts = append(parts, object.GetNamespace())
	}
	parts = append(parts, strings.ToLower(object.GetKind()), strings.ReplaceAll(object.GetName(), ":", "-"))
	return strings.Join(parts, "_") + ".yaml"
}

func describe(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}

var creationOrder = []schema.GroupKind{
	{Group: corev1.GroupName, Kind: "Namespace"},
	{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"},
	{Group: corev1.GroupName, Kind: "ServiceAccount"},
	{Group: rbacv1.GroupName, Kind: "ClusterRole"},
	{Group: rbacv1.GroupName, Kind: "Role"},
	{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"},
	{Group: rbacv1.GroupName, Kind: "RoleBinding"},
	{Group: corev1.GroupName, Kind: "ConfigMap"},
	{Group: corev1.GroupName, Kind: "Secret"},
	{Group: corev1.GroupName, Kind: "Service"},
}

func creationIndex(object *unstructured.Unstructured) int {
	if at := slices.Index(creationOrder, object.GroupVersionKind().GroupKind()); at >= 0 {
		return at
	}
	return len(creationOrder)
}

func compare(a, b *unstructured.Unstructured) int {
	x, y := a.GroupVersionKind(), b.GroupVersionKind()
	return cmp.Or(cmp.Compare(creationIndex(a), creationIndex(b)), cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// toManifest returns a copy of an object without empty fields and fields that a server owns.
func toManifest(object runtime.Object) (*unstructured.Unstructured, error) {
	copied, isUntyped := object.DeepCopyObject().(*unstructured.Unstructured)
	if !isUntyped {
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil || len(kinds) != 1 {
			return nil, fmt.Errorf("export %T: %w", object, ErrUnknownKind)
		}
		// runtime.DefaultUnstructuredConverter would keep unsigned numbers, which an untyped object cannot have.
		content, err := kjson.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("export %T: %w", object, err)
		}
		copied = &unstructured.Unstructured{}
		if err := kjson.Unmarshal(content, &copied.Object); err != nil {
			return nil, fmt.Errorf("export %T: %w", object, err)
		}
		if kinds[0].Group == configv1.GroupName || kinds[0].Group == operatorv1.GroupName {
			dropZero(reflect.ValueOf(object), copied.Object)
			if _, has := copied.Object["spec"]; !has {
				copied.Object["spec"] = map[string]any{} // which is required
			}
		}
		copied.SetGroupVersionKind(kinds[0])
	}
	if gvk := copied.GroupVersionKind(); gvk.Kind == "" || gvk.Version == "" {
		return nil, fmt.Errorf("export %s: %w", describe(copied), ErrUnknownKind)
	}
	if copied.GetName() == "" {
		return nil, fmt.Errorf("export %s: %w", describe(copied), ErrNoName)
	}
	for _, field := range []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "ownerReferences",
		"resourceVersion", "selfLink", "uid",
	} {
		unstructured.RemoveNestedField(copied.Object, "metadata", field)
	}
	dropNulls(copied.Object)
	if isEmpty(copied.Object["status"]) {
		delete(copied.Object, "status")
	}
	return copied, nil
}

// dropNulls removes null fields, which come from nil slices and which the schema of a resource rejects.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if item == nil {
				delete(value, key)
				continue
			}
			dropNulls(item)
		}
	case []any:
		for _, item := range value {
			dropNulls(item)
		}
	}
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case map[string]any:
		for _, item := range value {
			if !isEmpty(item) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return false
}

// dropZero removes empty strings and structs, which OpenShift's types encode and an API server rejects for disabled
// feature sets (U-REN-31). Values of pointers are kept.
func dropZero(value reflect.Value, content any) {
	if value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		if !value.IsNil() {
			dropZero(value.Elem(), content)
		}
		return
	}
	if value.CanAddr() && value.Addr().Type().Implements(reflect.TypeFor[json.Marshaler]()) {
		return // custom encoding
	}
	switch value.Kind() {
	case reflect.Struct:
		object, ok := content.(map[string]any)
		if !ok {
			return
		}
		for i := range value.NumField() {
			field := value.Field(i)
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			switch {
			case name == "" && value.Type().Field(i).Anonymous:
				dropZero(field, content)
			case field.IsZero() && (field.Kind() == reflect.String || field.Kind() == reflect.Struct):
				delete(object, name)
			default:
				dropZero(field, object[name])
			}
		}
	case reflect.Slice, reflect.Array:
		items, ok := content.([]any)
		for i := range items {
			if ok && i < value.Len() {
				dropZero(value.Index(i), items[i])
			}
		}
	}
}
