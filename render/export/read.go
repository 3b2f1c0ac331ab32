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

// ErrNotManifest means: a file is not what Files has written.
var ErrNotManifest = errors.New("not a manifest of one object")

// Read returns the objects of manifests that Files has written, in the order of the files, without loss but for what Manifests left out.
func Read(folder fs.FS) ([]runtime.Object, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var objects []runtime.Object
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() == StatusDir {
			continue // of what the manifests have as well
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
