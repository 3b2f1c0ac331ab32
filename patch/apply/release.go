// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// ReleaseOptions are the options of a release.
type ReleaseOptions struct {
	// Restore reports whether to restore a replaced value; nil for all.
	Restore func(patch.Replaced) bool
	// Leave lists values to write as another manager, for fields that would become absent or keep a creation-time
	// default of an Overridable manager that no longer fits. Fields of other owners are not written.
	Leave []patch.Replaced
}

// Release removes the patch from the live object (R-SNO-6). Fields without another owner become absent. It is
// idempotent and can be interrupted: values are restored by the first requests, the annotation is removed by the last.
func (a *Applier) Release(ctx context.Context, live *unstructured.Unstructured, options ReleaseOptions) (outcome Outcome, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.record(&outcome, err) }()
	own, err := ownership.Applied(live, patch.FieldOwner(a.Module), "")
	if err != nil {
		return outcome, err
	}
	outcome.Kind = Unchanged
	if a.history[live.GetUID()].cacheIsStale(live) {
		return outcome, nil
	}
	if own.Empty() {
		delete(a.history, live.GetUID())
		return outcome, nil
	}
	live = live.DeepCopy()
	a.recordUnanswered(live)
	if err := a.restore(ctx, live, options); err != nil {
		return outcome, explain(live, err)
	}
	if err := a.removeAnnotation(ctx, live); err != nil {
		return outcome, explain(live, err)
	}
	body := identity(live, nil).Object
	bind(body, live)
	answer, err := a.put(ctx, live, body, own)
	if err != nil {
		return outcome, explain(live, err)
	}
	if a.DryRun {
		outcome.Kind = WouldRelease
		return outcome, nil
	}
	outcome.Kind = Released
	a.setHistory(live.GetUID(), &history{resourceVersion: answer.GetResourceVersion()})
	return outcome, nil
}

// restore restores values. Each request is bound to the version of the previous one, so a concurrent write wins.
func (a *Applier) restore(ctx context.Context, live *unstructured.Unstructured, options ReleaseOptions) error {
	values, err := a.valuesToRestore(live, options)
	if err != nil {
		return err
	}
	// By manager. A merge patch with an equal value does not change the owner, so equal values are applied.
	merges, applies := map[string]map[string]any{}, map[string]map[string]any{}
	for _, r := range values {
		_, path, err := parse(r.Field)
		if err != nil {
			return err
		}
		have, _, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrIntent, r.Field, err)
		}
		value, err := decode(r)
		if err != nil {
			return err
		}
		bodies := merges
		if reflect.DeepEqual(have, value) {
			applied, err := ownership.Applied(live, r.Manager, "")
			if err != nil {
				return err
			}
			if !applied.Empty() && r.Manager != patch.ReleasedManager(a.Module) {
				continue // an apply of this field alone would drop its others, and the manager applies it again itself
			}
			bodies = applies
		}
		if bodies[r.Manager] == nil {
			bodies[r.Manager] = map[string]any{}
		}
		if err := set(bodies[r.Manager], mergePatch(have, value), path...); err != nil {
			return err
		}
	}

	updateVersion := func(answer *unstructured.Unstructured, err error) error {
		if err == nil && !a.DryRun {
			live.SetResourceVersion(answer.GetResourceVersion())
		}
		return err
	}
	for _, manager := range slices.Sorted(maps.Keys(merges)) {
		if err := updateVersion(a.merge(ctx, live, manager, merges[manager])); err != nil {
			return err
		}
	}
	for _, manager := range slices.Sorted(maps.Keys(applies)) {
		body := identity(live, applies[manager]).Object
		bind(body, live)
		if err := updateVersion(a.request(ctx, manager, body)); err != nil {
			return err
		}
	}
	return nil
}

// removeAnnotation removes an annotation that would stay because a client owns it through a subresource.
func (a *Applier) removeAnnotation(ctx context.Context, live *unstructured.Unstructured) error {
	key := patch.ReplacedAnnotation(a.Module)
	_, foreign, err := a.annotationOwner(live)
	if _, exists := live.GetAnnotations()[key]; err != nil || !foreign || !exists {
		return err
	}
	body := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: nil}}}
	answer, err := a.merge(ctx, live, patch.FieldOwner(a.Module), body)
	if err == nil && !a.DryRun {
		live.SetResourceVersion(answer.GetResourceVersion())
	}
	return err
}

// valuesToRestore returns the values to leave, and the replaced ones that are not restored yet.
func (a *Applier) valuesToRestore(live *unstructured.Unstructured, options ReleaseOptions) ([]patch.Replaced, error) {
	owner := patch.FieldOwner(a.Module)
	replaced, err := patch.ReadReplaced(live, a.Module)
	if err != nil {
		return nil, err
	}
	var values []patch.Replaced
	for _, r := range replaced {
		managers, err := ownership.Managers(live, r.Field)
		if err != nil {
			return nil, err
		}
		if slices.Equal(managers, []string{owner}) && (options.Restore == nil || options.Restore(r)) {
			values = append(values, r)
		}
	}
	for _, left := range options.Leave {
		managers, err := ownership.Managers(live, left.Field)
		if err != nil {
			return nil, err
		}
		if slices.Contains(managers, owner) && !slices.ContainsFunc(managers, func(m string) bool {
			return m != owner && !slices.Contains(a.Overridable, Overridable{Field: left.Field, Manager: m})
		}) {
			values = append(values, left)
		}
	}
	return values, nil
}

// mergePatch returns the merge patch between two values, with null for removed keys.
func mergePatch(have, want any) any {
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
		merge[name] = mergePatch(present[name], value)
	}
	return merge
}

// decode returns a replaced value. Unstructured decoding keeps integers.
func decode(r patch.Replaced) (any, error) {
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Value","value":%s}`, r.Value)
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", patch.ErrReplacedAnnotation, r.Field, err)
	}
	return u.Object["value"], nil
}

// identity adds kind, name and UID of the live object to the content.
func identity(live *unstructured.Unstructured, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(live.GroupVersionKind())
	u.SetName(live.GetName())
	u.SetNamespace(live.GetNamespace())
	u.SetUID(live.GetUID())
	return u
}
