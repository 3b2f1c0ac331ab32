package apply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// ErrUnset is returned for a field that cannot be made absent: a list whose members have owners of their own, a map with such members
// that are not named as well, a part of an atomic value, or a field that the API server fills with a default.
var ErrUnset = errors.New("field cannot be made absent")

// absence is what is to be kept off one object, as keys of nested maps.
type absence struct {
	// meant is everything that shall be absent: what the caller names now, and what an earlier call made absent. A caller may
	// name a field only while it is there, so both together are what an intent is known by.
	meant [][]string
	// held are the named fields that are there, and those whose absence we own. sent is what a request has to say of them.
	held, sent [][]string
	// named is what the caller names and the object has.
	named [][]string
	// emptied are maps that the caller names and the object has. Nothing is in them when the other named fields are gone.
	emptied [][]string
}

// absent sorts out what is to become of the unset fields.
func (a *Applier) absent(live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, replaced []patch.Replaced, unset []string) (absence, error) {
	var out absence
	for _, field := range unset {
		path, err := names(field)
		if err != nil {
			return absence{}, err
		}
		if _, intended, err := unstructured.NestedFieldNoCopy(body, path...); err != nil || intended {
			return absence{}, fmt.Errorf("%w: %s is in the intent and to be absent", ErrIntent, field)
		}
		out.meant = append(out.meant, path)
		if !has(live.Object, path) {
			continue
		}
		switch whole, err := removable(live, path); {
		case err != nil:
			return absence{}, err
		case !whole:
			out.emptied = append(out.emptied, path)
		default:
			out.named, out.held, out.sent = append(out.named, path), append(out.held, path), append(out.sent, path)
		}
	}
	for _, path := range out.emptied {
		value, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		if !hollow(value, path, out.named) {
			return absence{}, fmt.Errorf("%w: .%s is not owned as one value; name its members, or the atomic value around it", ErrUnset, strings.Join(path, "."))
		}
	}
	own.Leaves().Iterate(func(p fieldpath.Path) {
		path := make([]string, 0, len(p))
		for _, element := range p {
			if element.FieldName == nil {
				return
			}
			path = append(path, *element.FieldName)
		}
		if !has(live.Object, path) && free(body, path) {
			out.held = append(out.held, path)
			path = outermost(live, body, path)
			out.meant, out.sent = append(out.meant, path), append(out.sent, path)
		}
	})
	for _, r := range replaced {
		if path, err := names(r.Field); err == nil && a.isMark(r) && free(body, path) {
			out.meant = append(out.meant, outermost(live, body, path))
		}
	}
	return out, nil
}

// removable tells whether null removes the value, because it is owned as one. What else is no map can never be removed as a whole.
func removable(live *unstructured.Unstructured, path []string) (whole bool, err error) {
	field := "." + strings.Join(path, ".")
	at, err := ownership.ParsePath(field)
	if err != nil {
		return false, err
	}
	owners, err := ownership.ManagersAt(live, at)
	if err != nil || len(owners) == 0 {
		return true, err
	}
	if whole, err = ownership.Atomic(live, at); err != nil || whole {
		return whole, err
	}
	value, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
	if _, isMap := value.(map[string]any); !isMap {
		return false, fmt.Errorf("%w: %s is not owned as one value; name its members, or the atomic value around it", ErrUnset, field)
	}
	return false, nil
}

// hollow tells whether a map has nothing in it but the named fields, and maps that are hollow themselves.
func hollow(value any, path []string, named [][]string) bool {
	members, isMap := value.(map[string]any)
	if !isMap {
		return false
	}
	for name, member := range members {
		at := append(slices.Clone(path), name)
		if !slices.ContainsFunc(named, func(n []string) bool { return slices.Equal(n, at) }) && !hollow(member, at, named) {
			return false
		}
	}
	return true
}

// outermost is the outermost map around an absent field that is absent as well, or the field. To say that the field alone is to be absent would
// bring the maps around it back.
func outermost(live *unstructured.Unstructured, body map[string]any, path []string) []string {
	for around := path[:len(path)-1]; len(around) > 0 && !has(live.Object, around) && free(body, around); around = around[:len(around)-1] {
		path = around
	}
	return path
}

// empty removes the maps that have nothing in them any more, in one more request, by a merge patch: null in an applied body removes no map that
// has members, and one level of empty maps at a time. Who owned them owned nothing. answer is the object that the fields in them are gone from.
func (a *Applier) empty(ctx context.Context, live, answer *unstructured.Unstructured, maps [][]string) (*unstructured.Unstructured, error) {
	var left [][]string
	for _, path := range maps {
		value, found, _ := unstructured.NestedFieldNoCopy(answer.Object, path...)
		switch {
		case !found:
		case !hollow(value, path, nil):
			return nil, fmt.Errorf("%w: .%s has a default of the API server; intend a value instead", ErrUnset, strings.Join(path, "."))
		default:
			left = append(left, path)
		}
	}
	if len(left) == 0 {
		return answer, nil
	}
	return a.merged(ctx, live, patch.FieldOwner(a.Module), without(map[string]any{}, left), answer.GetResourceVersion())
}

func has(object map[string]any, path []string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(object, path...)
	return err == nil && found
}

// free tells that the intent says nothing about the path.
func free(body map[string]any, path []string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(body, path...)
	return err == nil && !found
}

// without is the body with an explicit null for each path. The body is not changed.
func without(body map[string]any, paths [][]string) map[string]any {
	if len(paths) == 0 {
		return body
	}
	body = deepCopy(body)
	for _, path := range paths {
		// It fails only below a path that is null already: absent made sure that there is nothing else but maps on the way.
		_ = unstructured.SetNestedField(body, nil, path...)
	}
	return body
}

// putThenRemove is for a custom resource, where null is no valid value: what is remembered goes first, with the rest of the
// intent, and then a merge patch removes the fields. Nobody owns an absent field of a custom resource, so the annotation says
// that it was us.
func (a *Applier) putThenRemove(ctx context.Context, live *unstructured.Unstructured, body map[string]any, absent [][]string, own *fieldpath.Set, resourceVersion string, opts ...client.ApplyOption) (*unstructured.Unstructured, error) {
	body = deepCopy(body)
	if err := a.mark(body, absent); err != nil {
		return nil, err
	}
	answer, err := a.put(ctx, live, body, nil, own, resourceVersion, opts...)
	if err != nil {
		return nil, err
	}
	if !a.DryRun {
		resourceVersion = answer.GetResourceVersion()
	}
	return a.merged(ctx, live, patch.FieldOwner(a.Module), without(map[string]any{}, absent), resourceVersion)
}

// mark adds, for each of the fields whose value the body's annotation remembers, an entry of our own: what we hold there is
// null.
func (a *Applier) mark(body map[string]any, fields [][]string) error {
	text, remembered, err := unstructured.NestedString(body, "metadata", "annotations", patch.ReplacedAnnotation(a.Module))
	if err != nil || !remembered {
		return err
	}
	replaced, err := patch.ReadReplaced(map[string]string{patch.ReplacedAnnotation(a.Module): text}, a.Module)
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(replaced) {
		path, err := names(r.Field)
		if err != nil {
			return err
		}
		if a.marked(replaced, r.Field) || !slices.ContainsFunc(fields, func(field []string) bool { return slices.Equal(field, path) }) {
			continue
		}
		replaced = append(replaced, patch.Replaced{Field: r.Field, Manager: patch.FieldOwner(a.Module), Value: json.RawMessage("null")})
	}
	slices.SortStableFunc(replaced, func(x, y patch.Replaced) int { return cmp.Compare(x.Field, y.Field) })
	return a.remember(body, replaced)
}

func (a *Applier) isMark(r patch.Replaced) bool {
	return r.Manager == patch.FieldOwner(a.Module) && bytes.Equal(r.Value, []byte("null"))
}

func (a *Applier) marked(replaced []patch.Replaced, field string) bool {
	return slices.ContainsFunc(replaced, func(r patch.Replaced) bool { return r.Field == field && a.isMark(r) })
}

// unmarked is what is remembered without the marks of fields that the intent sets now.
func (a *Applier) unmarked(replaced []patch.Replaced, body map[string]any) []patch.Replaced {
	return slices.DeleteFunc(slices.Clone(replaced), func(r patch.Replaced) bool {
		path, err := names(r.Field)
		return err == nil && a.isMark(r) && !free(body, path)
	})
}
