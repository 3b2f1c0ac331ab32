// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// ErrNotManifest is returned for a file that Files has not written.
var ErrNotManifest = errors.New("not a manifest of one object")

// Read returns the objects of manifests that Files has written, in the order of the files.
func Read(folder fs.FS) ([]runtime.Object, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var objects []runtime.Object
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() == StatusDir {
			continue // the manifests have the statuses too
		}
		if entry.IsDir() || path.Ext(entry.Name()) != ".yaml" {
			return nil, fmt.Errorf("read manifests: %s: %w", entry.Name(), ErrNotManifest)
		}
		content, err := fs.ReadFile(folder, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		text, err := yaml.YAMLToJSONStrict(content)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %s: %w: %w", entry.Name(), ErrNotManifest, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("read manifests: %s: %w: %w", entry.Name(), ErrNotManifest, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
