// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"reflect"
	"strings"
)

// dropZero removes empty strings and structs, which OpenShift's types encode and an API server rejects for disabled
// feature sets (U-REN-31). Values of pointers are kept.
func dropZero(value reflect.Value, content any) {
	if value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		if !value.IsNil() {
			dropZero(value.Elem(), content)
		}
		return
	}
	if value.CanAddr() && value.Addr().Type().Implements(reflect.TypeFor[json.Marshaler]()) {
		return // custom encoding
	}
	switch value.Kind() {
	case reflect.Struct:
		object, ok := content.(map[string]any)
		if !ok {
			return
		}
		for i := range value.NumField() {
			field := value.Field(i)
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			switch {
			case name == "" && value.Type().Field(i).Anonymous:
				dropZero(field, content)
			case field.IsZero() && (field.Kind() == reflect.String || field.Kind() == reflect.Struct):
				delete(object, name)
			default:
				dropZero(field, object[name])
			}
		}
	case reflect.Slice, reflect.Array:
		items, ok := content.([]any)
		for i := range items {
			if ok && i < value.Len() {
				dropZero(value.Index(i), items[i])
			}
		}
	}
}
