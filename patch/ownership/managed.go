package ownership

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var (
	// ErrManagedFields is returned for an entry of metadata.managedFields that cannot be decoded.
	ErrManagedFields = errors.New("unreadable metadata.managedFields")
	// ErrFieldPath is returned for a path that is not a dotted list of field names such as ".spec.replicas".
	ErrFieldPath = errors.New("not a field path")
)

// ParsePath turns a dotted path such as ".spec.nodePlacement.nodeSelector" into a field path. It is the notation of the API
// server's conflict messages, without the bracketed selectors of list elements, which no patch of ours names.
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

// decode is the set of an entry. It is shared with whoever decoded the same one before, so it must not be changed.
func decode(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	if entry.FieldsV1 == nil {
		return &fieldpath.Set{}, nil
	}
	// The floor of the dependencies has no accessor for the bytes, and the newest deprecates the field.
	raw, err := entry.FieldsV1.MarshalJSON()
	var set *fieldpath.Set
	if err == nil {
		set, err = decodedSets.get(sha256.Sum256(raw), func() (*fieldpath.Set, error) {
			made := &fieldpath.Set{}
			return made, made.FromJSON(bytes.NewReader(raw))
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%w: manager %q: %w", ErrManagedFields, entry.Manager, err)
	}
	return set, nil
}

// Applied is the set of fields that the manager owns through server-side apply in the main resource ("") or a subresource
// ("status"). A manager without an entry owns the empty set. The set is the caller's own.
func Applied(object metav1.Object, manager, subresource string) (*fieldpath.Set, error) {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager && entry.Subresource == subresource && entry.Operation == metav1.ManagedFieldsOperationApply {
			set, err := decode(entry)
			if err != nil {
				return nil, err
			}
			return set.Copy(), nil
		}
	}
	return &fieldpath.Set{}, nil
}

// Managers lists, sorted and without repetition, the managers that own the field, something below it, or the atomic value
// that contains it. A field that nobody owns has none.
//
// The managedFields do not tell an atomic value from a map whose owner has lost everything in it to others. Where any
// manager owns something inside, it is a map.
func Managers(object metav1.Object, field string) ([]string, error) {
	path, err := ParsePath(field)
	if err != nil {
		return nil, err
	}
	return ManagersAt(object, path)
}

// ManagersAt is Managers for any path, also one through the element of a list:
//
//	fieldpath.MakePathOrDie("spec", "ports", fieldpath.KeyByFields("port", 80, "protocol", "TCP"))
//
// An element is selected by all of its list's keys, as the API names them, or by its value in a set. Where the API has the list
// as one value, the owners of the list own every element that could be in it.
func ManagersAt(object metav1.Object, path fieldpath.Path) ([]string, error) {
	fields, err := read(object)
	if err != nil {
		return nil, err
	}
	return fields.managersAt(path), nil
}

// Atomic tells whether the value at the path is owned as one value on this object, so that who sets a part of it replaces all
// of it. A field that nobody owns is not. An empty map or list looks atomic whatever it is, so ask only about one that
// has something in it.
//
// The API server decides it by the schema of the moment of each write, which clients cannot see; what it wrote into the
// managedFields can.
func Atomic(object metav1.Object, path fieldpath.Path) (bool, error) {
	fields, err := read(object)
	if err != nil || len(path) == 0 {
		return false, err
	}
	everybody := fields.everybody
	for _, element := range path[:len(path)-1] {
		everybody = everybody.WithPrefix(element)
	}
	last := path[len(path)-1]
	return everybody.Members.Has(last) && everybody.WithPrefix(last).Empty(), nil
}

// managedFields are decoded metadata.managedFields. They are shared with whoever read the same ones before, so they must not be changed.
type managedFields struct {
	// owned is what each manager owns, in whatever way and subresource; everybody is all of that together.
	owned     map[string]*fieldpath.Set
	everybody *fieldpath.Set
}

func read(object metav1.Object) (managedFields, error) {
	entries := object.GetManagedFields()
	key, err := keyOf(entries)
	if err != nil {
		return managedFields{}, err
	}
	return readFields.get(key, func() (managedFields, error) {
		fields := managedFields{map[string]*fieldpath.Set{}, &fieldpath.Set{}}
		for _, entry := range entries {
			set, err := decode(entry)
			if err != nil {
				return managedFields{}, err
			}
			fields.everybody = fields.everybody.Union(set)
			if fields.owned[entry.Manager] != nil {
				set = set.Union(fields.owned[entry.Manager])
			}
			fields.owned[entry.Manager] = set
		}
		return fields, nil
	})
}

// managersAt is ManagersAt. The zero value has none.
func (f managedFields) managersAt(path fieldpath.Path) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.owned)), func(m string) bool { return !owns(f.owned[m], f.everybody, path) })
}

func owns(set, everybody *fieldpath.Set, path fieldpath.Path) bool {
	for i, element := range path {
		children, descends := set.Children.Get(element)
		inside, isMap := everybody.Children.Get(element)
		if set.Members.Has(element) && (i == len(path)-1 || !isMap) {
			return true
		}
		if !descends {
			return false
		}
		set, everybody = children, inside
	}
	return !set.Empty()
}

// BeforeFirstApply is the manager to which the API server gives everything on an object without managedFields, before it lets
// anybody apply to it.
const BeforeFirstApply = "before-first-apply"

// Others lists the managers of the field that are not among the given ones. Ask it only about a field that has a value: on an
// object without any managedFields every value belongs to BeforeFirstApply.
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
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(managers, func(m string) bool { return slices.Contains(own, m) }), nil
}
