package export

import (
	"encoding/json"
	"reflect"
	"strings"
)

// dropZero removes from the JSON form of a Go value the texts and structs that are zero, which the types of OpenShift's API write all the
// same. An API server refuses those of fields that its feature set does not have (U-REN-31). What a pointer points at is kept: it was set.
func dropZero(value reflect.Value, content any) {
	if value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		if !value.IsNil() {
			dropZero(value.Elem(), content)
		}
		return
	}
	if value.CanAddr() && value.Addr().Type().Implements(reflect.TypeFor[json.Marshaler]()) {
		return // it has a form of its own
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
