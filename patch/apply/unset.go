// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// ErrUnset is returned for a field that cannot be made absent: part of an atomic value, a field with a default, a list
// whose elements have owners, or a map whose members have owners and are not named as well.
var ErrUnset = errors.New("field cannot be made absent")

// absence lists fields that must be absent, as keys of nested maps.
type absence struct {
	// intended are the named fields and those that an earlier call removed.
	intended [][]string
	nulls    [][]string // what the request sets to null
	// values and maps are the named fields that exist; maps are empty without the other named fields.
	values, maps [][]string
}

func absenceOf(live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, unset []string) (absence, error) {
	var out absence
	for _, field := range unset {
		at, path, err := parse(field)
		if err != nil {
			return absence{}, err
		}
		if !isFree(body, path) {
			return absence{}, fmt.Errorf("%w: %s is in the intent and among the fields to unset", ErrIntent, field)
		}
		out.intended = append(out.intended, path)
		value, found, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		if err != nil || !found {
			continue
		}
		atomic, err := isAtomic(live, at)
		if err != nil {
			return absence{}, err
		}
		if atomic {
			out.values, out.nulls = append(out.values, path), append(out.nulls, path)
		} else if _, isMap := value.(map[string]any); isMap {
			out.maps = append(out.maps, path)
		} else {
			return absence{}, notAtomic(path)
		}
	}
	for _, path := range out.maps {
		if value, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...); !isEmpty(value, path, out.values) {
			return absence{}, notAtomic(path)
		}
	}
	own.Leaves().Iterate(func(p fieldpath.Path) {
		path, err := keys(p)
		if err == nil && !has(live.Object, path) && isFree(body, path) {
			path = outermost(live, body, path)
			out.intended, out.nulls = append(out.intended, path), append(out.nulls, path)
		}
	})
	return out, nil
}

func notAtomic(path []string) error {
	return fmt.Errorf("%w: .%s is not owned as one value; name its members, or the atomic value around it", ErrUnset, strings.Join(path, "."))
}

func hasDefault(path []string) error {
	return fmt.Errorf("%w: .%s has a default of the API server; intend a value instead", ErrUnset, strings.Join(path, "."))
}

// isAtomic reports whether null removes the value: no manager owns only a part of it.
func isAtomic(live *unstructured.Unstructured, at fieldpath.Path) (bool, error) {
	if owners, err := ownership.ManagersAt(live, at); err != nil || len(owners) == 0 {
		return true, err
	}
	return ownership.Atomic(live, at)
}

// isEmpty reports whether a map contains only the given paths and empty maps.
func isEmpty(value any, path []string, but [][]string) bool {
	members, isMap := value.(map[string]any)
	if !isMap {
		return false
	}
	for name, member := range members {
		at := append(slices.Clone(path), name)
		if !slices.ContainsFunc(but, func(n []string) bool { return slices.Equal(n, at) }) && !isEmpty(member, at, but) {
			return false
		}
	}
	return true
}

// outermost returns the outermost absent map around an absent field: null inside it would create the map.
func outermost(live *unstructured.Unstructured, body map[string]any, path []string) []string {
	for around := path[:len(path)-1]; len(around) > 0 && !has(live.Object, around) && isFree(body, around); around = around[:len(around)-1] {
		path = around
	}
	return path
}

// removeEmpty removes emptied maps by a merge patch: null in an applied body does not remove a map with members.
func (a *Applier) removeEmpty(ctx context.Context, object *unstructured.Unstructured, maps [][]string) (*unstructured.Unstructured, error) {
	var remaining [][]string
	for _, path := range maps {
		value, found, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		switch {
		case !found:
		case !isEmpty(value, path, nil):
			return nil, hasDefault(path)
		default:
			remaining = append(remaining, path)
		}
	}
	if len(remaining) == 0 {
		return object, nil
	}
	return a.merge(ctx, object, patch.FieldOwner(a.Module), withNulls(nil, remaining))
}

func has(object map[string]any, path []string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(object, path...)
	return err == nil && found
}

// isFree reports whether the body has nothing at the path.
func isFree(body map[string]any, path []string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(body, path...)
	return err == nil && !found
}

// withNulls returns a copy of the body with null at each path.
func withNulls(body map[string]any, paths [][]string) map[string]any {
	out := map[string]any{}
	if body != nil {
		out = runtime.DeepCopyJSON(body)
	}
	for _, path := range paths {
		// This fails only below a null: absenceOf accepts no other path.
		_ = unstructured.SetNestedField(out, nil, path...)
	}
	return out
}
