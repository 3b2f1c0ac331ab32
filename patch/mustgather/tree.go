package mustgather

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var (
	// ErrNoTree is returned by Open for something that is not the output of must-gather or inspect.
	ErrNoTree = errors.New("not a must-gather: neither " + clusterDir + " nor " + namespacesDir + " in it")
	// ErrNotFound is returned for an object that the tree does not hold.
	ErrNotFound = errors.New("not in the must-gather")
	// ErrCorrupt is returned for a file that cannot be understood. The error names the file.
	ErrCorrupt = errors.New("corrupt file in the must-gather")
)

const (
	clusterDir    = "cluster-scoped-resources"
	namespacesDir = "namespaces"
	coreGroup     = "core"
)

// Tree gives access to the objects. It reads files when they are asked for.
type Tree struct {
	files fs.FS
	// roots are the folders that hold cluster-scoped-resources or namespaces, in order of their names.
	roots []string
}

// Open finds the trees in the file system: at its top, or one folder below.
func Open(files fs.FS) (*Tree, error) {
	if isRoot(files, ".") {
		return &Tree{files: files, roots: []string{"."}}, nil
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTree, err)
	}
	tree := &Tree{files: files}
	for _, entry := range entries {
		if isRoot(files, entry.Name()) {
			tree.roots = append(tree.roots, entry.Name())
		}
	}
	if len(tree.roots) == 0 {
		return nil, ErrNoTree
	}
	return tree, nil
}

func isRoot(files fs.FS, dir string) bool {
	for _, name := range []string{clusterDir, namespacesDir} {
		if info, err := fs.Stat(files, path.Join(dir, name)); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

// Get reads one object; the namespace is empty for cluster-scoped ones. An object that is nowhere is an ErrNotFound. An
// ErrCorrupt says that the file which should hold it, or the list which might, cannot be understood.
func (t *Tree) Get(resource schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	bases := t.bases(resource, namespace)
	if strings.Contains(name, "/") {
		bases = nil // no object has such a name, and joining it would lead elsewhere
	}
	for _, base := range bases {
		object, err := t.one(path.Join(base, name+".yaml"))
		if err != nil {
			return nil, err
		}
		if object != nil {
			if object.GetName() != name || object.GetNamespace() != namespace {
				return nil, fmt.Errorf("%w: %s/%s.yaml holds %q in namespace %q", ErrCorrupt, base, name, object.GetName(), object.GetNamespace())
			}
			return object, nil
		}
		items, err := t.items(base + ".yaml")
		if err != nil {
			return nil, err
		}
		for i := range items {
			if items[i].GetName() == name && items[i].GetNamespace() == namespace {
				return &items[i], nil
			}
		}
	}
	where := "cluster-scoped"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	return nil, fmt.Errorf("%w: %s %s, %s", ErrNotFound, resource, name, where)
}

// List reads all objects of a resource in one namespace, or the cluster-scoped ones, in order of their names; none is no
// error. What a list holds of another namespace is left out. One corrupt file does not hide the others: what could be read is
// returned together with an error for each that could not.
func (t *Tree) List(resource schema.GroupResource, namespace string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	var faults []error
	add := func(object unstructured.Unstructured) {
		known := slices.ContainsFunc(objects, func(o unstructured.Unstructured) bool { return o.GetName() == object.GetName() })
		if !known {
			objects = append(objects, object)
		}
	}
	for _, base := range t.bases(resource, namespace) {
		entries, err := fs.ReadDir(t.files, base)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, fmt.Errorf("%w: %s: %w", ErrCorrupt, base, err))
		}
		for _, entry := range entries {
			if path.Ext(entry.Name()) != ".yaml" {
				continue
			}
			object, err := t.one(path.Join(base, entry.Name()))
			switch {
			case err != nil:
				faults = append(faults, err)
			case object != nil && object.GetNamespace() != namespace:
				faults = append(faults, fmt.Errorf("%w: %s/%s holds %q in namespace %q", ErrCorrupt, base, entry.Name(), object.GetName(), object.GetNamespace()))
			case object != nil:
				add(*object)
			}
		}
		items, err := t.items(base + ".yaml")
		if err != nil {
			faults = append(faults, err)
		}
		for _, item := range items {
			if item.GetNamespace() == namespace {
				add(item)
			}
		}
	}
	slices.SortFunc(objects, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return objects, errors.Join(faults...)
}

// bases are the paths at which the resource can lie, without an ending.
func (t *Tree) bases(resource schema.GroupResource, namespace string) []string {
	group := resource.Group
	if group == "" {
		group = coreGroup
	}
	scope := clusterDir
	if namespace != "" {
		scope = path.Join(namespacesDir, namespace)
	}
	bases := make([]string, 0, len(t.roots))
	for _, root := range t.roots {
		bases = append(bases, path.Join(root, scope, group, resource.Resource))
	}
	return bases
}

// one reads a file that holds one object; nil when there is no such file.
func (t *Tree) one(file string) (*unstructured.Unstructured, error) {
	object, err := t.read(file)
	if err != nil || object == nil {
		return nil, err
	}
	if object.GetName() == "" {
		return nil, fmt.Errorf("%w: %s: the object has no name", ErrCorrupt, file)
	}
	return object, nil
}

// items reads a file that holds a list; nil when there is no such file.
func (t *Tree) items(file string) ([]unstructured.Unstructured, error) {
	object, err := t.read(file)
	if err != nil || object == nil {
		return nil, err
	}
	list, err := object.ToList()
	if err != nil || !strings.HasSuffix(object.GetKind(), "List") {
		return nil, fmt.Errorf("%w: %s is not a list", ErrCorrupt, file)
	}
	for i := range list.Items {
		// A list that was read as one of a type leaves the type of its items out.
		if list.Items[i].GetKind() == "" {
			list.Items[i].SetAPIVersion(object.GetAPIVersion())
			list.Items[i].SetKind(strings.TrimSuffix(object.GetKind(), "List"))
		}
		if list.Items[i].GetName() == "" {
			return nil, fmt.Errorf("%w: %s: item %d has no name", ErrCorrupt, file, i)
		}
	}
	return list.Items, nil
}

func (t *Tree) read(file string) (*unstructured.Unstructured, error) {
	text, err := fs.ReadFile(t.files, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, file, err)
	}
	encoded, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, file, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, file, err)
	}
	if object.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%w: %s: the object has no apiVersion", ErrCorrupt, file)
	}
	return object, nil
}
