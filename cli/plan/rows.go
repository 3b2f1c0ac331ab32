// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/solonode/sno/patch/controller"
	"github.com/solonode/sno/patch/ownership"
)

// rows returns the fields that would change, and those in force on unchanged objects.
func rows(ctx context.Context, m controller.Module, by client.Client, out Module) ([]Row, error) {
	var all []Row
	add := func(first bool, its []Row) {
		for _, row := range its {
			row.Why = why(row.Verdict, out, first)
			all = append(all, row)
		}
	}
	for i, w := range out.Writes {
		add(i == 0, written(w, out.Module))
	}
	objects, err := namedObjects(ctx, m, by)
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
		if err := by.Get(ctx, o.Key(), live); isAbsent(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("%s: reading %s %s: %w", m.Name(), o.Kind, o.Key(), err)
		}
		add(true, fields(live, live, out.Module))
	}
	return all, nil
}

func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// namedObjects returns the objects on which the module may own fields.
func namedObjects(ctx context.Context, m controller.Module, by client.Client) ([]controller.Object, error) {
	var objects []controller.Object
	for _, o := range m.Objects() {
		if o.Name != "" && !o.MetadataOnly {
			objects = append(objects, o)
		}
		if o.Name != "" || o.Labels != "" {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(o.GroupVersion().WithKind(o.Kind + "List"))
		if err := by.List(ctx, list, client.InNamespace(o.Namespace)); isAbsent(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("%s: listing %s: %w", m.Name(), o.Kind, err)
		}
		for i := range list.Items {
			if ownership.Owns(&list.Items[i], patch.FieldOwner(m.Name())) {
				o.Namespace, o.Name = list.Items[i].Namespace, list.Items[i].Name
				objects = append(objects, o)
			}
		}
	}
	return objects, nil
}

func written(w rehearsal.Write, module string) []Row {
	const none = ownership.None
	switch {
	case w.Before == nil:
		return []Row{{NameOf(w.After), none, none, none, none, Create, ""}}
	case w.After == nil:
		return []Row{{NameOf(w.Before), none, none, none, patch.FieldOwner(module), Delete, ""}}
	}
	return fields(w.Before, w.After, module)
}

func blocked(out Module, forced []rehearsal.Write) []Row {
	var all []Row
	for _, w := range forced {
		for _, row := range written(w, out.Module) {
			known := slices.ContainsFunc(out.Rows, func(r Row) bool { return r.Object == row.Object && r.Field == row.Field })
			if known || row.Verdict == InForce || row.Verdict == Own {
				continue
			}
			row.Verdict, row.Why = Blocked, "Owned by "+row.Owner+" and not changed; remove it there or use --force-conflicts"
			if row.Owner == ownership.None {
				row.Why = "Not changed while other fields of the object are blocked"
			}
			all = append(all, row)
		}
	}
	return all
}

// fields returns the fields that change or that the module owns.
func fields(before, after *unstructured.Unstructured, module string) []Row {
	owner := patch.FieldOwner(module)
	var all []Row
	leaves(before).Union(leaves(after)).Leaves().Iterate(func(at fieldpath.Path) {
		var path []string
		for _, element := range at {
			path = append(path, *element.FieldName)
		}
		if hidden(path, module) {
			return
		}
		had, has := managers(before, at), managers(after, at)
		row := Row{
			Object: NameOf(before), Field: join(path), Live: text(before, path), Desired: text(after, path),
			Owner: cmp.Or(strings.Join(had, ","), ownership.None),
		}
		switch {
		case row.Desired == ownership.None:
			row.Verdict = Remove
		case row.Live != row.Desired:
			row.Verdict = Set
		case !slices.Contains(has, owner):
			return
		case slices.Contains(had, owner):
			row.Verdict = InForce
		default:
			row.Verdict = Own
		}
		all = append(all, row)
	})
	slices.SortFunc(all, func(a, b Row) int { return cmp.Compare(a.Field, b.Field) })
	return all
}

// why returns the module's message for the first of several writes, and a general reason for others.
func why(verdict Verdict, out Module, first bool) string {
	message := strings.TrimPrefix(out.Message, "Dry run: ")
	switch state := out.Result.State; {
	case verdict == InForce && state == patch.InForce, verdict != InForce && state == patch.WouldChange && first:
		return strings.ToUpper(message[:1]) + message[1:]
	case verdict == InForce:
		return "Owned by this module"
	}
	return "Required by the topology"
}

// leaves returns the paths of all values; maps with members are no values.
func leaves(object *unstructured.Unstructured) *fieldpath.Set {
	set := fieldpath.NewSet()
	var walk func(value any, path fieldpath.Path)
	walk = func(value any, path fieldpath.Path) {
		members, _ := value.(map[string]any)
		for name, member := range members {
			walk(member, append(path.Copy(), fieldpath.FieldNameElement(name)))
		}
		if len(members) == 0 {
			set.Insert(path)
		}
	}
	walk(object.Object, nil)
	return set
}

// managers returns the managers of a field. Those of a list are the managers of the map that contains it.
func managers(object *unstructured.Unstructured, at fieldpath.Path) []string {
	if len(object.GetManagedFields()) == 0 {
		return []string{"unknown"}
	}
	names, _ := ownership.ManagersAt(object, at) // the module reports damaged managedFields
	return names
}

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

// hidden reports whether the field is maintained by the API server, a status, or bookkeeping of the module.
func hidden(path []string, module string) bool {
	switch path[0] {
	case "status", "apiVersion", "kind":
		return true
	case "metadata":
		return len(path) == 1 || !slices.Contains([]string{"labels", "annotations", "finalizers", "ownerReferences"}, path[1]) ||
			len(path) == 3 && path[2] == patch.ReplacedAnnotation(module)
	}
	return false
}

func text(object *unstructured.Unstructured, path []string) string {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if !found || err != nil {
		return ownership.None
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}
