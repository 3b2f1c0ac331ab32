// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// expectedConflicts returns the conflicts in managedFields. complete is false if these do not show all owners.
func (a *Applier) expectedConflicts(live *unstructured.Unstructured, changes []ownership.Change) (conflicts []Conflict, complete bool) {
	complete = true
	for _, change := range changes {
		if !change.Differs || change.Owner == ownership.None || change.Owner == patch.FieldOwner(a.Module) {
			continue
		}
		field, found := atomicAround(live, change.Field)
		if !found {
			complete = false
			continue
		}
		for manager := range strings.SplitSeq(change.Owner, ",") {
			c := Conflict{Field: field, Manager: manager}
			if manager != patch.FieldOwner(a.Module) && !slices.Contains(conflicts, c) {
				conflicts = append(conflicts, c)
			}
		}
	}
	return conflicts, complete
}

// atomicAround returns the atomic value that is, or contains, the field.
func atomicAround(live *unstructured.Unstructured, field string) (string, bool) {
	path, err := ownership.ParsePath(field)
	if err != nil {
		return "", false
	}
	for i := range path {
		if atomic, err := ownership.Atomic(live, path[:i+1]); err == nil && atomic {
			return path[:i+1].String(), true
		}
	}
	return "", false
}

func (a *Applier) mayOverride(conflicts []Conflict) bool {
	return a.ForceConflicts || !slices.ContainsFunc(conflicts, func(c Conflict) bool { return !slices.Contains(a.Overridable, Overridable(c)) })
}

// withoutAnnotation removes the conflict about the module's annotation with a client that wrote it through a
// subresource: ReadReplaced has not counted what it wrote.
func (a *Applier) withoutAnnotation(live *unstructured.Unstructured, conflicts []Conflict) []Conflict {
	path, foreign, err := a.annotationOwner(live)
	if err != nil || !foreign {
		return conflicts
	}
	return slices.DeleteFunc(slices.Clone(conflicts), func(c Conflict) bool { return c.Field == path.String() })
}

// annotationOwner returns the path of the module's annotation, and whether other clients own it by subresources only.
func (a *Applier) annotationOwner(live *unstructured.Unstructured) (path fieldpath.Path, foreign bool, err error) {
	path = fieldpath.MakePathOrDie("metadata", "annotations", patch.ReplacedAnnotation(a.Module))
	foreign, err = ownership.OnlyBySubresource(live, path, patch.FieldOwner(a.Module))
	return path, foreign, err
}

// ConflictsOf returns the field manager conflicts of an API error (U-SSA-1).
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
		// Only the message has the manager's name: conflict with "name" using version at time.
		_, rest, _ := strings.Cut(cause.Message, `"`)
		manager, _, _ := strings.Cut(rest, `"`)
		conflicts = append(conflicts, Conflict{Field: cause.Field, Manager: manager})
	}
	return conflicts
}

// replace adds the live values of the contested fields to the replaced values, with the first owner of each.
func replace(live *unstructured.Unstructured, replaced []patch.Replaced, conflicts []Conflict) ([]patch.Replaced, error) {
	byField := map[string]patch.Replaced{}
	for _, r := range replaced {
		byField[r.Field] = r
	}
	for _, c := range slices.Backward(conflicts) {
		_, path, err := parse(c.Field)
		if err != nil {
			return nil, err
		}
		value, found, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		if err != nil || !found {
			return nil, fmt.Errorf("%w: %s is owned by %q but has no value", ErrStale, c.Field, c.Manager)
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", c.Field, err)
		}
		byField[c.Field] = patch.Replaced{Field: c.Field, Manager: c.Manager, Value: encoded}
	}
	return slices.SortedFunc(maps.Values(byField), func(x, y patch.Replaced) int { return cmp.Compare(x.Field, y.Field) }), nil
}

func explain(live *unstructured.Unstructured, err error) error {
	if outdated := StaleOrGone(err); outdated != nil {
		return outdated
	}
	return fmt.Errorf("applying to %s %s: %w", live.GetKind(), client.ObjectKeyFromObject(live), err)
}

// StaleOrGone returns an ErrStale or ErrGone if the object was changed since it was read, nil for any other error.
// After a request that is bound to the UID alone, an object that was recreated is an ErrGone.
func StaleOrGone(err error) error {
	switch {
	case apierrors.IsNotFound(err), isOtherUID(err):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return nil
}

// isOtherUID reports whether the object was recreated since it was read, which only the message shows.
func isOtherUID(err error) bool {
	if apierrors.IsConflict(err) {
		return strings.Contains(err.Error(), "uid mismatch") || strings.Contains(err.Error(), "UID in precondition")
	}
	return apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) &&
		strings.Contains(err.Error(), "metadata.uid: ")
}
