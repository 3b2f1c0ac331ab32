package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// ReleaseOptions say what becomes of the fields when a module lets go. The zero value is the plain undo: every value that
// was taken by force goes back to whom it was taken from, the rest is removed or left to its co-owners.
type ReleaseOptions struct {
	// Restore decides which remembered values go back; nil restores all.
	Restore func(patch.Replaced) bool
	// Leave lists values to leave behind in the name of a manager, for fields that would otherwise become absent, or keep a creation-time
	// default of an Overridable manager that no longer fits. A field that is not ours, or has any other owner, is left alone.
	Leave []patch.Replaced
}

// Release takes the module's patch off the live object (R-SNO-6). What the module owns alone disappears (the API's
// default applies), what it owns together with others stays theirs. It is idempotent, and may be cut off between any
// two of its requests: values are put back first, and the annotation that remembers them goes last.
func (a *Applier) Release(ctx context.Context, live *unstructured.Unstructured, options ReleaseOptions) (outcome Outcome, err error) {
	defer func() { a.record(outcome, err) }()
	owner := patch.FieldOwner(a.Module)
	own, err := ownership.Applied(live, owner, "")
	if err != nil {
		return Outcome{Kind: Refused}, err
	}
	if a.behind(live) {
		return Outcome{Kind: Unchanged}, nil
	}
	if own.Empty() {
		a.Forget(live.GetUID())
		return Outcome{Kind: Unchanged}, nil
	}
	replaced, err := patch.ReadReplaced(live.GetAnnotations(), a.Module)
	if err != nil {
		return Outcome{Kind: Refused}, err
	}

	back, err := a.restoring(live, replaced, options)
	if err != nil {
		return Outcome{Kind: Refused}, err
	}
	// Bound to the version that was read, and then to each answer: a person's write in between wins.
	resourceVersion := live.GetResourceVersion()
	for _, manager := range slices.Sorted(maps.Keys(back.writes)) {
		if resourceVersion, err = a.merge(ctx, live, manager, back.writes[manager], resourceVersion); err != nil {
			return Outcome{Kind: Refused}, a.explain(live, err)
		}
	}
	for _, manager := range slices.Sorted(maps.Keys(back.joins)) {
		if resourceVersion, err = a.join(ctx, live, manager, back.joins[manager], resourceVersion); err != nil {
			return Outcome{Kind: Refused}, a.explain(live, err)
		}
	}

	empty := identity(live)
	empty.SetUID(live.GetUID())
	answer, err := a.put(ctx, live, empty.Object, nil, own, resourceVersion)
	if err != nil {
		return Outcome{Kind: Refused}, a.explain(live, err)
	}
	if a.DryRun {
		return Outcome{Kind: WouldRelease}, nil
	}
	a.letGo(live.GetUID(), answer.GetResourceVersion())
	return Outcome{Kind: Released}, nil
}

// merge writes a merge patch in the name of the manager, to the given version of the object, and returns the next version.
func (a *Applier) merge(ctx context.Context, live *unstructured.Unstructured, manager string, body map[string]any, resourceVersion string) (string, error) {
	answer, err := a.merged(ctx, live, manager, body, resourceVersion)
	if err != nil {
		return "", err
	}
	if a.DryRun {
		return resourceVersion, nil
	}
	return answer.GetResourceVersion(), nil
}

// merged is merge with the whole answer.
func (a *Applier) merged(ctx context.Context, live *unstructured.Unstructured, manager string, body map[string]any, resourceVersion string) (*unstructured.Unstructured, error) {
	if err := bind(body, resourceVersion); err != nil {
		return nil, err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding a merge patch: %w", err)
	}
	target := identity(live)
	opts := []client.PatchOption{client.FieldOwner(manager)}
	if a.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	return target, a.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, data), opts...)
}

// join makes the manager an owner of values that are on the object already. A merge patch with equal values would change
// nothing and make nobody an owner; server-side apply does.
func (a *Applier) join(ctx context.Context, live *unstructured.Unstructured, manager string, body map[string]any, resourceVersion string) (string, error) {
	u := identity(live)
	maps.Copy(u.Object, body)
	u.SetName(live.GetName())
	u.SetNamespace(live.GetNamespace())
	u.SetUID(live.GetUID())
	u.SetResourceVersion(resourceVersion)
	opts := []client.ApplyOption{client.FieldOwner(manager)}
	if a.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...); err != nil {
		return "", err
	}
	if a.DryRun {
		return resourceVersion, nil
	}
	return u.GetResourceVersion(), nil
}

// restored is what to write before letting go, by field manager.
type restored struct {
	// writes are merge patches.
	writes map[string]map[string]any
	// joins are values that only have to get their former owner back.
	joins map[string]map[string]any
}

func set(bodies map[string]map[string]any, manager, field string, value any) error {
	path, err := names(field)
	if err != nil {
		return err
	}
	if bodies[manager] == nil {
		bodies[manager] = map[string]any{}
	}
	if err := unstructured.SetNestedField(bodies[manager], value, path...); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrIntent, field, err)
	}
	return nil
}

// restoring collects, per field manager, what to write before letting go. Only fields that are ours are touched, so a second
// run after a crash finds nothing to do for those that the first run restored.
func (a *Applier) restoring(live *unstructured.Unstructured, replaced []patch.Replaced, options ReleaseOptions) (restored, error) {
	owner := patch.FieldOwner(a.Module)
	back := restored{writes: map[string]map[string]any{}, joins: map[string]map[string]any{}}
	for _, r := range replaced {
		managers, err := ownership.Managers(live, r.Field)
		if err != nil {
			return restored{}, err
		}
		path, err := names(r.Field)
		if err != nil {
			return restored{}, err
		}
		have, present, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		// Where nobody can own an absent field, its mark says that it is absent because of us. Managers may still name one: an
		// emptied map looks like an atomic value.
		ours := slices.Equal(managers, []string{owner}) || (!present && a.marked(replaced, r.Field))
		if !ours || a.isMark(r) || (options.Restore != nil && !options.Restore(r)) {
			continue
		}
		if err != nil {
			return restored{}, fmt.Errorf("%w: %s: %w", ErrIntent, r.Field, err)
		}
		value, err := decode(r)
		if err != nil {
			return restored{}, err
		}
		if !reflect.DeepEqual(have, value) {
			if err := set(back.writes, r.Manager, r.Field, instead(have, value)); err != nil {
				return restored{}, err
			}
			continue
		}
		applies, err := ownership.Applied(live, r.Manager, "")
		if err != nil {
			return restored{}, err
		}
		if !applies.Empty() {
			continue // applying this field alone would drop its others; it applies its own configuration again anyway
		}
		if err := set(back.joins, r.Manager, r.Field, value); err != nil {
			return restored{}, err
		}
	}
	for _, left := range options.Leave {
		managers, err := ownership.Managers(live, left.Field)
		if err != nil {
			return restored{}, err
		}
		if !slices.Contains(managers, owner) || slices.ContainsFunc(managers, func(m string) bool {
			return m != owner && !slices.Contains(a.Overridable, Overridable{Field: left.Field, Manager: m})
		}) {
			continue
		}
		path, err := names(left.Field)
		if err != nil {
			return restored{}, err
		}
		have, _, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		if err != nil {
			return restored{}, fmt.Errorf("%w: %s: %w", ErrIntent, left.Field, err)
		}
		value, err := decode(left)
		if err != nil {
			return restored{}, err
		}
		bodies := back.joins
		if !reflect.DeepEqual(have, value) {
			bodies, value = back.writes, instead(have, value)
		}
		if err := set(bodies, left.Manager, left.Field, value); err != nil {
			return restored{}, err
		}
	}
	return back, nil
}

// instead is the merge patch that turns one value into the other: a merge patch keeps what it does not name, so the keys that
// only the present value has are named with null.
func instead(have, want any) any {
	wanted, ok := want.(map[string]any)
	present, both := have.(map[string]any)
	if !ok || !both {
		return want
	}
	merge := make(map[string]any, len(wanted))
	for name := range present {
		merge[name] = nil
	}
	for name, value := range wanted {
		merge[name] = instead(present[name], value)
	}
	return merge
}

func decode(r patch.Replaced) (any, error) {
	u := &unstructured.Unstructured{}
	// Unstructured decoding keeps integers integers.
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Value","value":%s}`, r.Value)
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", patch.ErrReplacedAnnotation, r.Field, err)
	}
	return u.Object["value"], nil
}

func identity(live *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(live.GroupVersionKind())
	u.SetName(live.GetName())
	u.SetNamespace(live.GetNamespace())
	return u
}
