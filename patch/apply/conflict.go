package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// contested asks the API server, in a dry run, whether somebody else owns what a patch that was on the object would change
// now. A value that a person put in the place of ours is theirs to keep: a conflict, and no revert. The request is spared
// unless the object looks like it.
func (a *Applier) contested(ctx context.Context, live *unstructured.Unstructured, body map[string]any, off absence, intended uint64, changes []ownership.Change) ([]Conflict, error) {
	if a.ForceConflicts || a.remembered(live, intended) == nil {
		return nil, nil
	}
	own := patch.FieldOwner(a.Module)
	theirs := func(c ownership.Change) bool {
		return c.Differs && c.Owner != ownership.None && slices.ContainsFunc(strings.Split(c.Owner, ","), func(manager string) bool {
			return manager != own && !slices.Contains(a.Overridable, Overridable{Field: c.Field, Manager: manager})
		})
	}
	if !slices.ContainsFunc(changes, theirs) {
		return nil, nil
	}
	_, err := a.send(ctx, without(body, off.sent), client.DryRunAll)
	if apierrors.IsInvalid(err) && len(off.sent) > 0 {
		return nil, nil // a custom resource; conflicts come before the check of the values
	}
	conflicts := ConflictsOf(err)
	if len(conflicts) == 0 {
		return nil, err
	}
	if a.mayOverride(conflicts) {
		return nil, nil
	}
	return conflicts, nil
}

// foreseen are the conflicts that the managedFields of the object, as it was read, tell of, if each of them may be overridden; none otherwise, and
// then the API server says which there are. What it would say is among them, so a write with force that is bound to what was read takes
// nothing from anybody else, and a request is spared that can only be refused.
func (a *Applier) foreseen(live *unstructured.Unstructured, changes []ownership.Change) ([]Conflict, error) {
	var conflicts []Conflict
	for _, change := range changes {
		if !change.Differs || change.Owner == ownership.None {
			continue
		}
		for manager := range strings.SplitSeq(change.Owner, ",") {
			if manager == patch.FieldOwner(a.Module) {
				continue
			}
			field, err := a.overridable(live, change.Field, manager)
			if err != nil || field == "" {
				return nil, err
			}
			if c := (Conflict{Field: field, Manager: manager}); !slices.Contains(conflicts, c) {
				conflicts = append(conflicts, c)
			}
		}
	}
	return conflicts, nil
}

// overridable is the field that the manager may be overridden in for this one: itself, or the atomic value that it is in. Empty where there is
// none.
func (a *Applier) overridable(live *unstructured.Unstructured, field, manager string) (string, error) {
	for _, o := range a.Overridable {
		switch {
		case o.Manager != manager:
		case o.Field == field:
			return field, nil
		case strings.HasPrefix(field, o.Field+"."):
			path, err := ownership.ParsePath(o.Field)
			if err != nil {
				return "", err
			}
			if whole, err := ownership.Atomic(live, path); whole || err != nil {
				return o.Field, err
			}
		}
	}
	return "", nil
}

func (a *Applier) mayOverride(conflicts []Conflict) bool {
	if a.ForceConflicts {
		return true
	}
	for _, c := range conflicts {
		if !slices.Contains(a.Overridable, Overridable(c)) {
			return false
		}
	}
	return true
}

// ConflictsOf reads the causes of a field manager conflict from an API error (U-SSA-1). Another kind of conflict, such
// as a UID that no longer fits, has none, and nor has any other error.
func ConflictsOf(err error) []Conflict {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var conflicts []Conflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		// The manager's name stands only in the text: conflict with "name" using version at time.
		_, rest, _ := strings.Cut(cause.Message, `"`)
		manager, _, _ := strings.Cut(rest, `"`)
		conflicts = append(conflicts, Conflict{Field: cause.Field, Manager: manager})
	}
	return conflicts
}

// replace adds the live values of the contested fields to what is remembered. They are what somebody else wants now, so they
// take the place of what was remembered before. Of several owners of a field the first is remembered.
func replace(live *unstructured.Unstructured, replaced []patch.Replaced, conflicts []Conflict) ([]patch.Replaced, error) {
	replaced = slices.DeleteFunc(slices.Clone(replaced), func(r patch.Replaced) bool {
		return slices.ContainsFunc(conflicts, func(c Conflict) bool { return c.Field == r.Field })
	})
	for _, c := range conflicts {
		if slices.ContainsFunc(replaced, func(r patch.Replaced) bool { return r.Field == c.Field }) {
			continue
		}
		path, err := names(c.Field)
		if err != nil {
			return nil, err
		}
		value, found, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		if err != nil || !found {
			return nil, fmt.Errorf("%w: %s is owned by %q but has no value", ErrStale, c.Field, c.Manager)
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("remembering %s: %w", c.Field, err)
		}
		replaced = append(replaced, patch.Replaced{Field: c.Field, Manager: c.Manager, Value: encoded})
	}
	slices.SortFunc(replaced, func(x, y patch.Replaced) int { return cmp.Compare(x.Field, y.Field) })
	return replaced, nil
}

func (a *Applier) explain(live *unstructured.Unstructured, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case apierrors.IsConflict(err) && (strings.Contains(err.Error(), "uid mismatch") || strings.Contains(err.Error(), "UID in precondition")),
		apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) && strings.Contains(err.Error(), "metadata.uid: "):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return fmt.Errorf("applying to %s %s: %w", live.GetKind(), client.ObjectKeyFromObject(live), err)
}
