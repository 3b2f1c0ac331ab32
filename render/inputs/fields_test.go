// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// paths returns the paths of all leaf fields of a type, with [*] for items.
func paths(at string, of reflect.Type) []string {
	switch {
	case of.Kind() == reflect.Pointer:
		return paths(at, of.Elem())
	case reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return []string{at}
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		return paths(at+"[*]", of.Elem())
	case of.Kind() != reflect.Struct:
		return []string{at}
	}
	var found []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			found = append(found, paths(at, field.Type)...)
		case name != "" && name != "-":
			found = append(found, paths(strings.TrimPrefix(at+"."+name, "."), field.Type)...)
		}
	}
	return found
}

func fieldsOf(kind string) []string {
	resource, _ := reflect.TypeFor[Cluster]().FieldByName(kind)
	return slices.DeleteFunc(paths("", resource.Type), func(path string) bool {
		return !strings.HasPrefix(path, "spec.") && !strings.HasPrefix(path, "status.")
	})
}

// Every field of the API has an entry. An applied entry covers one field, others cover all below (R-REN-2).
func TestFieldsComplete(t *testing.T) {
	t.Parallel()
	for _, kind := range required {
		all := fieldsOf(kind)
		for _, path := range all {
			row, ok := fieldFor(kind, path)
			if !ok {
				t.Errorf("%s %s is in no row", kind, path)
				continue
			}
			applied := row.Effect == Applied || row.Effect == AppliedOpenShift
			if applied && row.Path != path && row.Path+"[*]" != path {
				t.Errorf("%s %s: the row %s covers several fields, but is applied", kind, path, row.Path)
			}
		}
		for _, row := range Fields {
			if row.Resource == kind && !slices.ContainsFunc(all, func(path string) bool {
				found, ok := fieldFor(kind, path)
				return ok && found.Path == row.Path
			}) {
				t.Errorf("%s %s: the row covers no field of the API", kind, row.Path)
			}
		}
	}
}
