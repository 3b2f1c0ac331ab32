// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/solonode/sno/render/export"
	sigsyaml "sigs.k8s.io/yaml"
)

var (
	// ErrManifest is in the error of a manifest that cannot be read.
	ErrManifest = errors.New("not a manifest")
	// ErrDuplicate is in the error of two different manifests of one object in one folder.
	ErrDuplicate = errors.New("two different manifests of one object")
)

// Folder is a folder of manifests: files that end in .yaml, .yml or .json, also in subfolders.
type Folder struct {
	// Name is the folder's name in errors.
	Name string
	FS   fs.FS
	// Rendered is true for the folder manifests of sno-render: its folder status has bodies of requests to the status
	// subresource.
	Rendered bool
}

type manifest struct {
	file   string
	object *unstructured.Unstructured
	status bool
	stage  int
	// last is the error of the last attempt.
	last error
}

func (m manifest) String() string { return m.file + ": " + describe(m.object) }

func describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() != "" {
		return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
	}
	return fmt.Sprintf("%s %s", o.GetKind(), o.GetName())
}

type identity struct {
	schema.GroupKind
	namespace, name string
}

func identityOf(o *unstructured.Unstructured) identity {
	return identity{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

var definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// first are the kinds that others need, in order. Within a stage, folders and files are in order.
var first = []schema.GroupKind{{Kind: "Namespace"}, definition}

const (
	objectStage = 2
	statusStage = 3
)

// read returns the manifests in the order in which they are applied, and the failures of those that cannot be read. Of
// an object in several folders, the first counts.
func read(folders []Folder) (all []manifest, failed []Failure) {
	for _, folder := range folders {
		seen := map[identity]manifest{}
		for _, m := range all {
			if !m.status {
				seen[identityOf(m.object)] = m
			}
		}
		earlier := len(all)
		err := fs.WalkDir(folder.FS, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name))) {
				return err
			}
			file := path.Join(folder.Name, name)
			text, err := fs.ReadFile(folder.FS, name)
			if err != nil {
				return err //nolint:wrapcheck // wrapped below
			}
			objects, err := objectsOf(text)
			if err != nil {
				failed = append(failed, Failure{File: file, Err: err})
			}
			for _, o := range objects {
				m := manifest{file: file, object: o, status: folder.Rendered && path.Dir(name) == export.StatusDir}
				other, twice := seen[identityOf(o)]
				switch {
				case m.status:
					m.stage = statusStage
				case !twice:
					m.stage = objectStage
					if i := slices.Index(first, o.GroupVersionKind().GroupKind()); i >= 0 {
						m.stage = i
					}
					seen[identityOf(o)] = m
				case slices.ContainsFunc(all[:earlier], func(a manifest) bool { return a.file == other.file }):
					continue // an earlier folder has it
				case reflect.DeepEqual(other.object.Object, o.Object):
					continue
				default:
					failed = append(failed, Failure{File: file, Object: describe(o), Err: fmt.Errorf("%w: %s and %s; remove one", ErrDuplicate, other.file, file)})
					continue
				}
				all = append(all, m)
			}
			return nil
		})
		if err != nil {
			failed = append(failed, Failure{File: folder.Name, Err: err})
		}
	}
	slices.SortStableFunc(all, func(a, b manifest) int { return cmp.Compare(a.stage, b.stage) })
	return all, failed
}

// defined returns the manifests without those of optional groups whose kind no manifest defines.
func defined(all []manifest, optional func(group string) bool) []manifest {
	kinds := map[schema.GroupKind]bool{}
	for _, m := range all {
		if identityOf(m.object).GroupKind == definition {
			group, _, _ := unstructured.NestedString(m.object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(m.object.Object, "spec", "names", "kind")
			kinds[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return slices.DeleteFunc(all, func(m manifest) bool {
		gk := identityOf(m.object).GroupKind
		return optional(gk.Group) && !kinds[gk]
	})
}

func objectsOf(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return objects, fmt.Errorf("%w: document %d: %w", ErrManifest, number, err)
		}
		encoded, err := sigsyaml.YAMLToJSONStrict(document)
		if err == nil && (string(encoded) == "null" || string(encoded) == "{}") {
			continue // only comments
		}
		o := &unstructured.Unstructured{}
		if err == nil {
			err = o.UnmarshalJSON(encoded) // it requires a kind, and keeps integers
		}
		if err != nil {
			return objects, fmt.Errorf("%w: document %d: %w", ErrManifest, number, err)
		}
		items := []*unstructured.Unstructured{o}
		if o.IsList() {
			items = nil
			if err := o.EachListItem(func(item runtime.Object) error {
				items = append(items, item.(*unstructured.Unstructured)) //nolint:forcetypeassert // of an untyped list
				return nil
			}); err != nil {
				return objects, fmt.Errorf("%w: document %d: %w", ErrManifest, number, err)
			}
		}
		for _, item := range items {
			if item.GetAPIVersion() == "" || item.GetKind() == "" || item.GetName() == "" {
				return objects, fmt.Errorf("%w: document %d: apiVersion %q, kind %q, metadata.name %q: none may be empty",
					ErrManifest, number, item.GetAPIVersion(), item.GetKind(), item.GetName())
			}
			// The server refuses these in an apply request.
			item.SetManagedFields(nil)
			item.SetResourceVersion("")
		}
		objects = append(objects, items...)
	}
}
