package apply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// ErrUnset is returned for a field that cannot be made absent: a map or a list whose members have owners of their own, a part
// of an atomic value, or a field that the API server fills with a default.
var ErrUnset = errors.New("field cannot be made absent")

// absence is what is to be kept off one object, as keys of nested maps.
type absence struct {
	// meant is everything that shall be absent: what the caller names now, and what an earlier call made absent. A caller may
	// name a field only while it is there, so both together are what an intent is known by.
	meant [][]string
	// sent is what a request has to say: the named fields that are there, and those whose absence we own.
	sent [][]string
	// named is what the caller names and the object has.
	named [][]string
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
		if err := removable(live, field); err != nil {
			return absence{}, err
		}
		out.named, out.sent = append(out.named, path), append(out.sent, path)
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
			out.meant, out.sent = append(out.meant, path), append(out.sent, path)
		}
	})
	for _, r := range replaced {
		if path, err := names(r.Field); err == nil && a.isMark(r) && free(body, path) {
			out.meant = append(out.meant, path)
		}
	}
	return out, nil
}

// removable refuses what no apply can remove as a whole.
func removable(live *unstructured.Unstructured, field string) error {
	path, err := ownership.ParsePath(field)
	if err != nil {
		return err
	}
	owners, err := ownership.ManagersAt(live, path)
	if err != nil || len(owners) == 0 {
		return err
	}
	whole, err := ownership.Atomic(live, path)
	if err != nil || whole {
		return err
	}
	return fmt.Errorf("%w: %s is not owned as one value; name its members, or the atomic value around it", ErrUnset, field)
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
		// It cannot fail: absent made sure that there is nothing but maps on the way.
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
