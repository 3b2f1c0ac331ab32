// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/solonode/sno/render/files"
)

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

// withStatus are the kinds whose status the installer sets.
var withStatus = []string{"Infrastructure", "Ingress", "Proxy", "Node"}

// File returns the manifest of an object with its type set, as a file of mode 0600.
func File(name string, object runtime.Object) (files.File, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	if !slices.Contains(withStatus, object.GetObjectKind().GroupVersionKind().Kind) {
		delete(fields, "status") // operators write it, and the API refuses the type's zero value
	}
	prune(fields)
	text, err := yaml.Marshal(fields)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	return files.File{Path: name, Mode: 0o600, Content: text}, nil
}

// prune removes empty fields, which an API server may not know. It keeps an empty spec, an empty policy, which allows
// nothing, and empty values in metadata and data.
func prune(fields map[string]any) {
	for key, value := range fields {
		m, isMap := value.(map[string]any)
		switch {
		case key == "metadata":
			delete(m, "creationTimestamp")
			continue
		case key == "data" || key == "policy" && isMap && len(m) == 0:
			continue
		case isMap:
			prune(m)
		}
		if value == nil || value == "" || isMap && len(m) == 0 && key != "spec" {
			delete(fields, key)
		}
	}
}
