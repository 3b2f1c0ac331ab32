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

// None is how an absent value and an absent owner are shown.
const None = "-"

// Change is one field of a patch beside what is there.
type Change struct {
	// Field is the dotted path, for example ".spec.replicas".
	Field string `json:"field"`
	// Live and Desired are JSON texts; None when there is no value.
	Live    string `json:"live"`
	Desired string `json:"desired"`
	// Owner names the managers of the live field, comma-separated; None when there are none.
	Owner string `json:"owner"`
	// Differs tells whether Live and Desired are different values.
	Differs bool `json:"differs"`
}

// Changes lists the fields of an intent, in order of their paths, beside the live object. Maps are taken apart down to
// their leaves, lists and empty maps are shown whole. A null in the intent is a field that is to be absent: its Desired is None.
// metadata.annotations of our own bookkeeping are left out: they are how,
// not what.
func Changes(live *unstructured.Unstructured, intent map[string]any, bookkeeping ...string) []Change {
	// Where they cannot be read no owner is known, which an apply complains about.
	fields, unreadable := read(live)
	var changes []Change
	walk(Payload(intent), nil, func(path []string, desired any) {
		if slices.Contains(bookkeeping, path[len(path)-1]) {
			return
		}
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
		// Names with dots cannot be written as a dotted path; their owner is that of the map around them.
		var at fieldpath.Path
		for _, name := range path {
			if strings.Contains(name, ".") {
				break
			}
			at = append(at, fieldpath.FieldNameElement(name))
		}
		if managers := fields.managersAt(at); unreadable == nil && len(managers) > 0 {
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
