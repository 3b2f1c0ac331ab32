package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/cli/rehearsal"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/manager"
	"github.com/solonode/sno/patch/ownership"
)

// rows are the fields that would change, and those of the module's objects that are as it wants them.
func rows(ctx context.Context, m manager.Module, by client.Client, out Module) ([]Row, error) {
	var all []Row
	for i, w := range out.Writes {
		its := written(w, out)
		for j := range its {
			its[j].Why = why(its[j].Verdict, out, i == 0)
		}
		all = append(all, its...)
	}
	objects, err := resting(ctx, m, by)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if slices.ContainsFunc(out.Writes, func(w rehearsal.Write) bool {
			return w.GroupVersionKind == o.GroupVersionKind && w.ObjectKey == o.Key()
		}) {
			continue
		}
		live := o.Unstructured()
		switch err := by.Get(ctx, o.Key(), live); {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: reading %s %s: %w", m.Name(), o.Kind, o.Key(), err)
		}
		its := fields(live, live, out)
		for j := range its {
			its[j].Why = why(its[j].Verdict, out, true)
		}
		all = append(all, its...)
	}
	return all, nil
}

// resting are the objects that may have fields of the module: those with a name, and of those without the ones that it applied to.
func resting(ctx context.Context, m manager.Module, by client.Client) ([]manager.Object, error) {
	var objects []manager.Object
	for _, o := range m.Objects() {
		switch {
		case o.Name != "" && !o.MetadataOnly:
			objects = append(objects, o)
		case o.Name == "" && o.Labels == "":
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(o.GroupVersion().WithKind(o.Kind + "List"))
			if err := by.List(ctx, list, client.InNamespace(o.Namespace)); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				continue
			} else if err != nil {
				return nil, fmt.Errorf("%s: reading every %s: %w", m.Name(), o.Kind, err)
			}
			for i := range list.Items {
				if own, err := ownership.Applied(&list.Items[i], patch.FieldOwner(m.Name()), ""); err == nil && !own.Empty() {
					objects = append(objects, manager.Object{
						GroupVersionKind: o.GroupVersionKind, Namespace: list.Items[i].Namespace, Name: list.Items[i].Name,
					})
				}
			}
		}
	}
	return objects, nil
}

func written(w rehearsal.Write, out Module) []Row {
	switch {
	case w.Before == nil:
		return []Row{whole(w.After, Create, out)}
	case w.After == nil:
		return []Row{whole(w.Before, Delete, out)}
	}
	return fields(w.Before, w.After, out)
}

func whole(object *unstructured.Unstructured, verdict Verdict, out Module) Row {
	row := Row{
		Object: NameOf(object), Field: ownership.None, Live: ownership.None, Desired: ownership.None, Owner: ownership.None,
		Verdict: verdict,
	}
	if verdict == Delete {
		row.Owner = patch.FieldOwner(out.Module)
	}
	return row
}

// blocked are the fields that would change by force, and do not without.
func blocked(out Module, forced []rehearsal.Write) []Row {
	var all []Row
	for _, w := range forced {
		for _, row := range written(w, out) {
			if row.Verdict == InForce || row.Verdict == Own || slices.ContainsFunc(out.Rows, func(r Row) bool {
				return r.Object == row.Object && r.Field == row.Field
			}) {
				continue
			}
			row.Verdict, row.Why = Blocked, "Owned by "+row.Owner+", so it stays as it is; remove it there or use --force-conflicts"
			if row.Owner == ownership.None {
				row.Why = "Left alone as long as other fields of the object are blocked"
			}
			all = append(all, row)
		}
	}
	return all
}

// fields are the rows of an object before and after.
func fields(before, after *unstructured.Unstructured, out Module) []Row {
	owner := patch.FieldOwner(out.Module)
	had, has := owned(before, owner), owned(after, owner)
	live, desired := map[string]leaf{}, map[string]leaf{}
	leaves(before.Object, nil, live)
	leaves(after.Object, nil, desired)
	var all []Row
	for _, field := range slices.Sorted(maps.Keys(union(live, desired))) {
		from, was := live[field]
		to, is := desired[field]
		path := from.path
		if !was {
			path = to.path
		}
		if hidden(path, out.Module) || (was && !is && emptied(from, desired)) || (is && !was && emptied(to, live)) {
			continue
		}
		row := Row{Object: NameOf(before), Field: field, Live: text(from, was), Desired: text(to, is), Owner: managers(before, path)}
		switch {
		case !is:
			row.Verdict = Remove
		case !was || !reflect.DeepEqual(from.value, to.value):
			row.Verdict = Set
		case touches(has, path) && !touches(had, path):
			row.Verdict = Own
		case touches(has, path):
			row.Verdict = InForce
		default:
			continue
		}
		all = append(all, row)
	}
	return all
}

// why is what the module says of it, which of several writes is the first one, or why else it does that.
func why(verdict Verdict, out Module, first bool) string {
	says := strings.TrimPrefix(out.Message, "Dry run: ")
	switch state := out.Result.State; {
	case verdict == InForce && state == patch.InForce, verdict != InForce && state == patch.WouldChange && first:
		return strings.ToUpper(says[:1]) + says[1:]
	case verdict == InForce:
		return "Owned by this module"
	}
	return "The topology asks for it"
}

// leaf is a value that is no map, or an empty one.
type leaf struct {
	path  []string
	value any
}

func leaves(v any, path []string, into map[string]leaf) {
	if m, ok := v.(map[string]any); ok && (len(m) > 0 || len(path) == 0) {
		for name, member := range m {
			leaves(member, append(slices.Clone(path), name), into)
		}
		return
	}
	into[join(path)] = leaf{path, v}
}

// emptied tells that the leaf is a map which has something in it on the other side, where that is shown.
func emptied(l leaf, other map[string]leaf) bool {
	if _, is := l.value.(map[string]any); !is {
		return false
	}
	for _, o := range other {
		if len(o.path) > len(l.path) && slices.Equal(o.path[:len(l.path)], l.path) {
			return true
		}
	}
	return false
}

// join writes a path as people do: names with dots are in brackets.
func join(path []string) string {
	var out strings.Builder
	for _, name := range path {
		if strings.ContainsAny(name, "./") {
			out.WriteString("[" + strconv.Quote(name) + "]")
			continue
		}
		out.WriteString("." + name)
	}
	return out.String()
}

// hidden is what the API server counts, what others report, and our own notes.
func hidden(path []string, module string) bool {
	if path[0] == "status" || path[0] == "apiVersion" || path[0] == "kind" {
		return true
	}
	if path[0] != "metadata" {
		return false
	}
	if len(path) == 1 || (path[1] != "labels" && path[1] != "annotations" && path[1] != "finalizers" && path[1] != "ownerReferences") {
		return true
	}
	return len(path) == 3 && path[2] == patch.ReplacedAnnotation(module)
}

func text(l leaf, present bool) string {
	if !present {
		return ownership.None
	}
	encoded, err := json.Marshal(l.value)
	if err != nil {
		return fmt.Sprint(l.value)
	}
	return string(encoded)
}

func owned(object *unstructured.Unstructured, owner string) *fieldpath.Set {
	set, err := ownership.Applied(object, owner, "")
	if err != nil {
		return fieldpath.NewSet() // whoever damaged managedFields, the module says so
	}
	return set
}

// touches tells whether the set has the field, something in it, or an atomic value around it.
func touches(set *fieldpath.Set, path []string) bool {
	found := false
	set.Leaves().Iterate(func(p fieldpath.Path) {
		for i := range min(len(p), len(path)) {
			if p[i].FieldName == nil || *p[i].FieldName != path[i] {
				return
			}
		}
		found = true
	})
	return found
}

// managers are who owns the field as it is. Of a list whose items have owners of their own, they are those of the map around it.
func managers(object *unstructured.Unstructured, path []string) string {
	if len(object.GetManagedFields()) == 0 {
		return "unknown"
	}
	elements := make(fieldpath.Path, len(path))
	for i := range path {
		elements[i] = fieldpath.PathElement{FieldName: &path[i]}
	}
	names, err := ownership.ManagersAt(object, elements)
	if err != nil || len(names) == 0 {
		return ownership.None
	}
	return strings.Join(names, ",")
}

func union(a, b map[string]leaf) map[string]leaf {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// NameOf is the object as kubectl names it.
func NameOf(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	name := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		name += "." + gvk.Group
	}
	return name + "/" + object.GetName()
}
