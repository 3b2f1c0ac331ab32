// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Decode fills a value whose fields have JSON names. It returns all fields that are unknown, as Forbidden, and all
// values of a wrong type, as TypeInvalid; the other fields are filled.
func (d *Document) Decode(into any) (errs field.ErrorList) {
	text := d.JSON
	for {
		unknown, err := kjson.UnmarshalStrict(text, into)
		var wrong *json.UnmarshalTypeError
		switch {
		case errors.As(err, &wrong):
			// The decoder names the first one only: find and remove it, and decode again.
			path, _ := pathAt(json.NewDecoder(bytes.NewReader(text)), wrong.Offset)
			at := pathOf(path)
			errs = append(errs, field.TypeInvalid(at, Omitted, "write "+described(wrong.Type)))
			without := remove(text, path)
			if bytes.Equal(without, text) {
				return errs
			}
			text = without
			continue
		case err != nil:
			return append(errs, Whole(field.ErrorTypeTypeInvalid, err.Error()))
		}
		for _, err := range unknown {
			var at interface{ FieldPath() string }
			if errors.As(err, &at) {
				errs = append(errs, field.Forbidden(field.NewPath(at.FieldPath()), "unknown field; check its spelling and its place"))
			}
		}
		return errs
	}
}

// pathAt returns the names and indices of the value at a number of bytes.
func pathAt(decoder *json.Decoder, offset int64) (path []any, found bool) {
	token, err := decoder.Token()
	if err != nil || decoder.InputOffset() >= offset {
		return nil, err == nil
	}
	delimiter, isContainer := token.(json.Delim)
	if !isContainer {
		return nil, false
	}
	for i := 0; decoder.More(); i++ {
		var step any = i
		if delimiter == '{' {
			if step, err = decoder.Token(); err != nil {
				return nil, false
			}
		}
		if below, found := pathAt(decoder, offset); found {
			return append([]any{step}, below...), true
		}
	}
	_, err = decoder.Token() // the end
	return nil, err != nil
}

func pathOf(steps []any) *field.Path {
	var path *field.Path
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			path = path.Child(step)
		case int:
			path = path.Index(step)
		}
	}
	return path
}

// remove replaces a value by null.
func remove(text []byte, path []any) []byte {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil || len(path) == 0 {
		return text
	}
	parent := tree
	for _, step := range path[:len(path)-1] {
		switch step := step.(type) {
		case string:
			parent = parent.(map[string]any)[step] //nolint:forcetypeassert // the path is of this text
		case int:
			parent = parent.([]any)[step] //nolint:forcetypeassert // the path is of this text
		}
	}
	switch last := path[len(path)-1].(type) {
	case string:
		parent.(map[string]any)[last] = nil //nolint:forcetypeassert // the path is of this text
	case int:
		parent.([]any)[last] = nil //nolint:forcetypeassert // the path is of this text
	}
	without, err := json.Marshal(tree)
	if err != nil {
		return text
	}
	return without
}

func described(of reflect.Type) string {
	switch of.Kind() {
	case reflect.String:
		return "text; numbers and words such as yes in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list; begin each item with -"
	case reflect.Map, reflect.Struct:
		return "a mapping; write fields as NAME: VALUE"
	}
	return "a number"
}
