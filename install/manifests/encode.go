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

// withStatus are the kinds of which an installer knows something of the status.
var withStatus = []string{"Infrastructure", "Ingress", "Proxy", "Node"}

// File returns the manifest of an object, whose type is set, as a file of mode 0600.
func File(name string, object runtime.Object) (files.File, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	if !slices.Contains(withStatus, object.GetObjectKind().GroupVersionKind().Kind) {
		delete(fields, "status") // operators write it, and what the type has of it by itself the API refuses
	}
	prune(fields)
	text, err := yaml.Marshal(fields)
	if err != nil {
		return files.File{}, fmt.Errorf("%w: %s: %w", errGenerate, name, err)
	}
	return files.File{Path: name, Mode: 0o600, Content: text}, nil
}

// prune removes what says nothing, of which the types have much: an API server may not even know the field. An empty spec stays, and an
// empty policy, which means that nothing is allowed; so does what metadata and data have, where a name is enough.
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
