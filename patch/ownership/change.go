// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// None is the text of an absent value or owner.
const None = "-"

// Change compares a field of a patch, such as ".spec.replicas", with the live object.
type Change struct {
	Field   string `json:"field"`
	Live    string `json:"live"`    // JSON or None
	Desired string `json:"desired"` // JSON or None
	Owner   string `json:"owner"`   // managers of the live field, comma-separated, or None
	Differs bool   `json:"differs"`
}

// Changes compares the leaves of maps, lists and empty maps of an intent, in order of their paths. null means absent.
func Changes(live *unstructured.Unstructured, intent map[string]any) []Change {
	fields, _ := read(live) // without owners if they cannot be decoded; an apply reports that
	var changes []Change
	walk(Payload(intent), nil, func(path []string, desired any) {
		field := "." + strings.Join(path, ".")
		have, found, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		change := Change{Field: field, Live: None, Desired: text(desired), Owner: None}
		if err == nil && found {
			change.Live = text(have)
		}
		change.Differs = !found || !reflect.DeepEqual(have, desired)
		if desired == nil {
			change.Desired, change.Differs = None, found
		}
		// Dotted paths cannot express a name with a dot: the owner is that of the map around it.
		var at fieldpath.Path
		for _, name := range path {
			if strings.Contains(name, ".") {
				break
			}
			at = append(at, fieldpath.FieldNameElement(name))
		}
		if managers := fields.managersAt(at); len(managers) > 0 {
			change.Owner = strings.Join(managers, ",")
		}
		changes = append(changes, change)
	})
	return changes
}

func walk(v any, path []string, leaf func([]string, any)) {
	if m, ok := v.(map[string]any); ok && (len(m) > 0 || len(path) == 0) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			walk(m[name], append(slices.Clone(path), name), leaf)
		}
		return
	}
	leaf(path, v)
}

func text(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(encoded)
}
