// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// UpToDate reports whether applying the intent would change nothing: the set, the fields that the applier owns, equals
// the fields of the intent, and the live object has its values. null in the intent means absent and owned. The set
// shows which values are atomic, so no schema is needed; when in doubt the result is false.
func UpToDate(live, intent map[string]any, set *fieldpath.Set) bool {
	return mapUpToDate(live, Payload(intent), set)
}

// Payload returns a copy of the intent without the fields that identify the object.
func Payload(intent map[string]any) map[string]any {
	payload := maps.Clone(intent)
	delete(payload, "apiVersion")
	delete(payload, "kind")
	if metadata, ok := payload["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, name := range []string{"name", "namespace", "uid", "resourceVersion"} {
			delete(metadata, name)
		}
		payload["metadata"] = metadata
		if len(metadata) == 0 {
			delete(payload, "metadata")
		}
	}
	return payload
}

func valueUpToDate(live, intent any, set *fieldpath.Set) bool {
	switch want := intent.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		return ok && mapUpToDate(have, want, set)
	case []any:
		have, ok := live.([]any)
		return ok && listUpToDate(have, want, set)
	}
	return false
}

func mapUpToDate(live, intent map[string]any, set *fieldpath.Set) bool {
	for name, want := range intent {
		element := fieldpath.FieldNameElement(name)
		have, ok := live[name]
		children, descends := set.Children.Get(element)
		switch {
		case !ok:
			if want != nil || !descends && !set.Members.Has(element) {
				return false
			}
		case descends:
			if !valueUpToDate(have, want, children) {
				return false
			}
		default:
			if !set.Members.Has(element) || !reflect.DeepEqual(have, want) {
				return false
			}
		}
	}
	return all(set, func(element fieldpath.PathElement) bool {
		if element.FieldName == nil {
			return false
		}
		_, intended := intent[*element.FieldName]
		return intended
	})
}

// listUpToDate compares an associative list, whose owned elements are selected by keys or values.
func listUpToDate(live, intent []any, set *fieldpath.Set) bool {
	seen := 0
	same := all(set, func(element fieldpath.PathElement) bool {
		have, want := find(live, element), find(intent, element)
		if have == nil || want == nil {
			return false
		}
		seen++
		if children, descends := set.Children.Get(element); descends {
			return valueUpToDate(have, want, children)
		}
		return reflect.DeepEqual(have, want)
	})
	return same && seen == len(intent)
}

// all reports whether every element of the set is accepted.
func all(set *fieldpath.Set, accept func(fieldpath.PathElement) bool) bool {
	accepted := true
	set.Members.Iterate(func(element fieldpath.PathElement) {
		if _, descends := set.Children.Get(element); !descends {
			accepted = accepted && accept(element)
		}
	})
	set.Children.Iterate(func(element fieldpath.PathElement) { accepted = accepted && accept(element) })
	return accepted
}

func find(list []any, element fieldpath.PathElement) any {
	for _, item := range list {
		switch {
		case element.Key != nil:
			if fields, ok := item.(map[string]any); ok && matches(fields, *element.Key) {
				return item
			}
		case element.Value != nil:
			if value.Equals(value.NewValueInterface(item), *element.Value) {
				return item
			}
		}
	}
	return nil
}

func matches(fields map[string]any, keys value.FieldList) bool {
	return !slices.ContainsFunc(keys, func(key value.Field) bool {
		have, ok := fields[key.Name]
		return !ok || !value.Equals(value.NewValueInterface(have), key.Value)
	})
}
