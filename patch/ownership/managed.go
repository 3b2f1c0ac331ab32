// SPDX-License-Identifier: Apache-2.0

// Package ownership decodes metadata.managedFields into owners of fields, and compares patches with objects. It is
// pure.
package ownership

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var (
	// ErrManagedFields is returned for metadata.managedFields that cannot be decoded.
	ErrManagedFields = errors.New("unreadable metadata.managedFields")
	// ErrFieldPath is returned for a path that is not a dotted list of names such as ".spec.replicas".
	ErrFieldPath = errors.New("not a field path")
)

// ParsePath parses a dotted path such as ".spec.replicas", as in conflict messages. List elements are an ErrFieldPath.
func ParsePath(field string) (fieldpath.Path, error) {
	rest, ok := strings.CutPrefix(field, ".")
	if !ok || strings.ContainsAny(rest, "[]") {
		return nil, fmt.Errorf("%w: %q; want something like .spec.replicas", ErrFieldPath, field)
	}
	var path fieldpath.Path
	for name := range strings.SplitSeq(rest, ".") {
		if name == "" {
			return nil, fmt.Errorf("%w: %q has an empty name", ErrFieldPath, field)
		}
		path = append(path, fieldpath.FieldNameElement(name))
	}
	return path, nil
}

// Fields returns the fields of an entry. The error is an ErrManagedFields.
func Fields(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	if entry.FieldsV1 == nil {
		return &fieldpath.Set{}, nil
	}
	// Of the supported versions, the oldest has no accessor for the bytes, and the newest deprecates the field.
	raw, err := entry.FieldsV1.MarshalJSON()
	set := &fieldpath.Set{}
	if err == nil {
		err = set.FromJSON(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: manager %q: %w", ErrManagedFields, entry.Manager, err)
	}
	return set, nil
}

// Applied returns the fields that the manager has applied to the main resource ("") or a subresource ("status").
func Applied(object metav1.Object, manager, subresource string) (*fieldpath.Set, error) {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager && entry.Subresource == subresource && entry.Operation == metav1.ManagedFieldsOperationApply {
			return Fields(entry)
		}
	}
	return &fieldpath.Set{}, nil
}

// Owns reports whether the manager has applied anything to the main resource, also if that cannot be decoded.
func Owns(object metav1.Object, manager string) bool {
	own, err := Applied(object, manager, "")
	return err != nil || !own.Empty()
}

// ManagedBy reports whether the manager has an entry for the main resource, of any operation.
func ManagedBy(object metav1.Object, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Subresource == ""
	})
}

// OnlyBySubresource reports whether a field has owners, apart from what the manager own has applied, that have all
// written it through a subresource. A client that may write only the status may not change the rest of the object.
func OnlyBySubresource(object metav1.Object, path fieldpath.Path, own string) (bool, error) {
	found := false
	for _, entry := range object.GetManagedFields() {
		set, err := Fields(entry)
		if err != nil {
			return false, err
		}
		switch {
		case !set.Has(path), entry.Manager == own && entry.Subresource == "" && entry.Operation == metav1.ManagedFieldsOperationApply:
		case entry.Subresource == "":
			return false, nil
		default:
			found = true
		}
	}
	return found, nil
}

// IsCustom reports whether the object is a custom resource, by the API groups in managedFields. Metadata in a request
// to its status is not stored, but becomes the client's in managedFields; a built-in kind stores annotations
// (U-SSA-13).
func IsCustom(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		group, _, grouped := strings.Cut(entry.APIVersion, "/")
		return grouped && strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
	})
}

// Managers returns, sorted, the managers that own the field, a field below it, or the atomic value that contains it.
//
// In managedFields an atomic value looks like a map without owned members. With an owned member it counts as a map.
func Managers(object metav1.Object, field string) ([]string, error) {
	path, err := ParsePath(field)
	if err != nil {
		return nil, err
	}
	return ManagersAt(object, path)
}

// ManagersAt is Managers for any path, also through an element of a list, by all its keys or by its value in a set:
//
//	fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("port", 80, "protocol", "TCP"))
func ManagersAt(object metav1.Object, path fieldpath.Path) ([]string, error) {
	fields, err := read(object)
	if err != nil {
		return nil, err
	}
	return fields.managersAt(path), nil
}

// Atomic reports whether the value is owned as one value. An empty map or list always looks atomic.
func Atomic(object metav1.Object, path fieldpath.Path) (bool, error) {
	fields, err := read(object)
	if err != nil || len(path) == 0 {
		return false, err
	}
	all := fields.all
	for _, element := range path[:len(path)-1] {
		all = all.WithPrefix(element)
	}
	last := path[len(path)-1]
	return all.Members.Has(last) && all.WithPrefix(last).Empty(), nil
}

// managedFields are the fields of each manager, of all operations and subresources, and their union.
type managedFields struct {
	owned map[string]*fieldpath.Set
	all   *fieldpath.Set
}

func read(object metav1.Object) (managedFields, error) {
	fields := managedFields{map[string]*fieldpath.Set{}, &fieldpath.Set{}}
	for _, entry := range object.GetManagedFields() {
		set, err := Fields(entry)
		if err != nil {
			return managedFields{}, err
		}
		fields.all = fields.all.Union(set)
		if fields.owned[entry.Manager] != nil {
			set = set.Union(fields.owned[entry.Manager])
		}
		fields.owned[entry.Manager] = set
	}
	return fields, nil
}

func (f managedFields) managersAt(path fieldpath.Path) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.owned)), func(m string) bool { return !owns(f.owned[m], f.all, path) })
}

func owns(set, all *fieldpath.Set, path fieldpath.Path) bool {
	for i, element := range path {
		children, descends := set.Children.Get(element)
		inside, isMap := all.Children.Get(element)
		if set.Members.Has(element) && (i == len(path)-1 || !isMap) {
			return true
		}
		if !descends {
			return false
		}
		set, all = children, inside
	}
	return !set.Empty()
}

// BeforeFirstApply is the manager to which the API server assigns all fields of an object without managedFields.
const BeforeFirstApply = "before-first-apply"

// Others returns the other managers of a field that has a value; BeforeFirstApply without managedFields.
func Others(object metav1.Object, field string, own ...string) ([]string, error) {
	path, err := ParsePath(field)
	if err != nil {
		return nil, err
	}
	return OthersAt(object, path, own...)
}

// OthersAt is Others for any path; see ManagersAt.
func OthersAt(object metav1.Object, path fieldpath.Path, own ...string) ([]string, error) {
	if len(object.GetManagedFields()) == 0 {
		return []string{BeforeFirstApply}, nil
	}
	managers, err := ManagersAt(object, path)
	return slices.DeleteFunc(managers, func(m string) bool { return slices.Contains(own, m) }), err
}
