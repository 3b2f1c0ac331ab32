package ownership

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Holds reports whether applying the intent would change nothing: the set (what the applier owns already) covers exactly the
// fields of the intent, and the live object has its values. Then the request can be spared altogether; an equal apply leaves
// the resourceVersion alone, but it is still a write request that the API server and its audit log see.
//
// A null in the intent stands for a field that is to be absent, and to be owned all the same: so the API server keeps it for
// built-in types.
//
// Both objects are decoded JSON (map[string]any, []any, string, int64, float64, bool, nil). The set says which values are
// atomic, so no schema is needed. When in doubt the answer is false, which costs one request.
func Holds(live, intent map[string]any, set *fieldpath.Set) bool {
	return holdsMap(live, Payload(intent), set)
}

// Payload is the intent without what only identifies the object: apiVersion, kind and the identity in metadata, which server-side
// apply never makes anybody's field. The argument is not changed.
func Payload(intent map[string]any) map[string]any {
	payload := make(map[string]any, len(intent))
	for key, v := range intent {
		switch key {
		case "apiVersion", "kind":
		case "metadata":
			metadata, _ := v.(map[string]any)
			kept := make(map[string]any, len(metadata))
			for name, m := range metadata {
				switch name {
				case "name", "namespace", "uid", "resourceVersion":
				default:
					kept[name] = m
				}
			}
			if len(kept) > 0 {
				payload[key] = kept
			}
		default:
			payload[key] = v
		}
	}
	return payload
}

func holds(live, intent any, set *fieldpath.Set) bool {
	switch want := intent.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		return ok && holdsMap(have, want, set)
	case []any:
		have, ok := live.([]any)
		return ok && holdsList(have, want, set)
	}
	return false
}

func holdsMap(live, intent map[string]any, set *fieldpath.Set) bool {
	for name, want := range intent {
		element := fieldpath.FieldNameElement(name)
		have, ok := live[name]
		switch {
		case !ok && want == nil:
			if !set.Members.Has(element) {
				return false
			}
			continue
		case !ok && absent(want):
			have = map[string]any{}
		case !ok:
			return false
		}
		if children, descends := set.Children.Get(element); descends {
			if !holds(have, want, children) {
				return false
			}
		} else if !set.Members.Has(element) || !reflect.DeepEqual(have, want) {
			return false
		}
	}
	return noneBeside(set, func(element fieldpath.PathElement) bool {
		if element.FieldName == nil {
			return false
		}
		_, intended := intent[*element.FieldName]
		return intended
	})
}

// absent tells that a value says nothing but that fields shall not be there. A map around them need not be there either.
func absent(v any) bool {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return v == nil
	}
	for _, member := range m {
		if !absent(member) {
			return false
		}
	}
	return true
}

// holdsList compares an associative list: every element that is owned is selected by its keys or by its own value.
func holdsList(live, intent []any, set *fieldpath.Set) bool {
	seen := 0
	same := noneBeside(set, func(element fieldpath.PathElement) bool {
		have, want := find(live, element), find(intent, element)
		if have == nil || want == nil {
			return false
		}
		seen++
		if children, descends := set.Children.Get(element); descends {
			return holds(have, want, children)
		}
		return reflect.DeepEqual(have, want)
	})
	return same && seen == len(intent)
}

// noneBeside reports whether every element of the set, counted once, is accepted.
func noneBeside(set *fieldpath.Set, accept func(fieldpath.PathElement) bool) bool {
	all := true
	set.Members.Iterate(func(element fieldpath.PathElement) {
		if _, descends := set.Children.Get(element); !descends {
			all = all && accept(element)
		}
	})
	set.Children.Iterate(func(element fieldpath.PathElement) { all = all && accept(element) })
	return all
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
	for _, key := range keys {
		have, ok := fields[key.Name]
		if !ok || !value.Equals(value.NewValueInterface(have), key.Value) {
			return false
		}
	}
	return true
}
