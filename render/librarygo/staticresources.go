// SPDX-License-Identifier: Apache-2.0

package librarygo

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/openshift/library-go/pkg/operator/resource/resourceapply"
	"github.com/openshift/library-go/pkg/operator/resource/resourceread"
	"github.com/openshift/library-go/pkg/operator/staticresourcecontroller"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/solonode/sno/render/loop"
	"github.com/solonode/sno/render/store"
)

// StaticResources returns the loop that creates the objects of the wanted *.yaml files, one object per file.
func StaticResources(name string, operator Operator, files fs.FS, wanted func(file string) bool) loop.Loop {
	l := loop.Loop{Name: name, Writes: []store.Pattern{operator.Pattern()}, AllowStale: operator.stale()}
	var names []string
	faulty := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".yaml" || !wanted(path.Base(file)) {
			return err
		}
		pattern, err := patternOf(files, file)
		names, l.Writes = append(names, file), append(l.Writes, pattern)
		return err
	})
	l.New = func(s *store.Session) (loop.Sync, error) {
		if faulty != nil {
			return nil, faulty
		}
		// The operator has a condition of the same type, which contains this name.
		controller := staticresourcecontroller.NewStaticResourceController(operator.Kind()+"StaticResources", func(name string) ([]byte, error) { return fs.ReadFile(files, name) },
			names, resourceapply.NewKubeClientHolder(s.Kube()), operator.client(s), recorder(s))
		return operator.managed(s, reconcileOnly(controller, s)), nil
	}
	return l
}

func patternOf(files fs.FS, file string) (store.Pattern, error) {
	content, err := fs.ReadFile(files, file)
	if err != nil {
		return store.Pattern{}, fmt.Errorf("read a static resource: %w", err)
	}
	object, err := resourceread.ReadGenericWithUnstructured(content)
	if err != nil {
		return store.Pattern{}, fmt.Errorf("static resource %s: %w", file, err)
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return store.Pattern{}, fmt.Errorf("static resource %s: %w", file, err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.GetObjectKind().GroupVersionKind())
	return store.Pattern{Group: resource.Group, Resource: resource.Resource, Namespace: m.GetNamespace(), Name: m.GetName()}, nil
}
