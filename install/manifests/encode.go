package manifests

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
)

// named is an object and the name of its file.
type named struct {
	file   string
	object runtime.Object
}

func encode(all []named) ([]files.File, error) {
	list := make([]files.File, 0, len(all))
	for _, n := range all {
		f, err := File(n.file, n.object)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b files.File) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// File returns the manifest of an object, whose type is set, as a file of mode 0600.
func File(name string, object runtime.Object) (files.File, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	prune(fields)
	text, err := yaml.Marshal(fields)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	return files.File{Path: name, Mode: 0o600, Content: text}, nil
}

// prune removes what says nothing, of which the types have much, but for an empty spec.
func prune(fields map[string]any) {
	for key, value := range fields {
		m, isMap := value.(map[string]any)
		if isMap {
			prune(m)
		}
		if value == nil || isMap && len(m) == 0 && key != "spec" && key != "policy" {
			delete(fields, key)
		}
	}
}
