package mustgather

import (
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Gathered tells whether the tree has objects of the resource in the namespace, or says that there are none: what is missing there is
// missing in the cluster. Otherwise nobody has asked the cluster.
func (t *Tree) Gathered(resource schema.GroupResource, namespace string) bool {
	return slices.ContainsFunc(t.bases(resource, namespace), func(base string) bool {
		for _, name := range []string{base, base + ".yaml"} {
			if _, err := fs.Stat(t.files, name); err == nil {
				return true
			}
		}
		return false
	})
}

// Path is where the object would lie, from the top of the tree; an empty name stands for all of the resource.
func (t *Tree) Path(resource schema.GroupResource, namespace, name string) string {
	base := t.bases(resource, namespace)[0]
	if name == "" {
		return base + ".yaml"
	}
	return path.Join(base, name+".yaml")
}

// Namespaces lists those of which there is anything, in order.
func (t *Tree) Namespaces() []string {
	var names []string
	for _, root := range t.roots {
		entries, err := fs.ReadDir(t.files, path.Join(root, namespacesDir))
		if err != nil {
			continue // this image gathered nothing in a namespace
		}
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
