// Package apply writes patches with server-side apply, and releases them.
//
// A patch only touches an object that exists, known by its UID (U-SSA-7). It never takes a field from a person or an unknown
// tool (R-SNO-5); a creation-time default is taken only from the managers that a module lists, and its value is kept in an
// annotation by the same request. Nothing is sent when nothing would change (R-SNO-4), a release restores what was taken
// (R-SNO-6), and a reverted patch is withheld for a while (R-SNO-9).
//
// The intent is an apply configuration, never a typed object, which would claim every field without omitempty (U-SSA-6).
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

var (
	// ErrGone is returned when the object was deleted, or deleted and created again, since it was read.
	ErrGone = errors.New("object is gone or was replaced since it was read")
	// ErrStale is returned when the object changed since it was read.
	ErrStale = errors.New("object changed since it was read")
	// ErrIntent is returned for an intent of another object, and for a live object without UID, kind or apiVersion.
	ErrIntent = errors.New("intent does not fit the live object")
)

// Overridable is a field whose value may be taken from a manager that writes it only when it creates the object.
type Overridable struct{ Field, Manager string }

// Conflict is one field that another manager owns.
type Conflict struct{ Field, Manager string }

// Kind is how an Apply or Release ended.
type Kind string

// The outcomes. Nothing is written but for Applied and Released, and nothing is sent for Unchanged and Withheld.
const (
	Unchanged    Kind = "unchanged"
	Applied      Kind = "applied"
	Released     Kind = "released"
	Conflicted   Kind = "conflict"        // another manager owns a field
	Withheld     Kind = "reverted"        // the patch was reverted, and it is too early to try again
	WouldApply   Kind = "dry-run-apply"   // the API server accepted a dry run
	WouldRelease Kind = "dry-run-release" // the API server accepted a dry run
	Failed       Kind = "error"
)

// Outcome is what happened to one object.
type Outcome struct {
	Kind Kind
	// Changes compares every field of the intent with the live object as it was read.
	Changes []ownership.Change
	// Conflicts is set for Conflicted.
	Conflicts []Conflict
	// RevertedBy are the known managers that wrote the object since the patch was in force; set for Withheld.
	RevertedBy []string
	// RetryAfter is when a withheld patch may be tried again.
	RetryAfter time.Duration
}

// Recorder counts outcomes; patch/metrics implements it.
type Recorder interface {
	RecordApply(module string, kind Kind)
	RecordConflict(module, fieldManager string)
}

// Applier writes the patches of one module. It is safe for concurrent use, and writes one object at a time.
type Applier struct {
	Client client.Client
	// Module determines the field owner and the annotation of replaced values.
	Module string
	// Overridable lists what may be taken without ForceConflicts.
	Overridable []Overridable
	// ForceConflicts takes every contested field, and keeps its value in the annotation.
	ForceConflicts bool
	// DryRun only sends dry runs.
	DryRun bool
	// Recorder counts every outcome; nil for none.
	Recorder Recorder
	// Clock is the time; nil for the real one.
	Clock clock.PassiveClock

	mu      sync.Mutex
	history map[types.UID]*history
}

// Apply applies the intent to the live object, which must be as it was read, with its managedFields. What is in force is not
// sent (R-SNO-4), and a field that another manager owns is a conflict (R-SNO-5). API errors are wrapped.
//
// unset names fields of a built-in type, such as ".spec.template.spec.nodeSelector", that must be absent; the rules are those
// of the intent. Once absent, a field stays so until Release, named or not. It must be a scalar or an atomic map or list
// without a default, or a map in which everything is named too, which a second request removes. Anything else is an ErrUnset.
func (a *Applier) Apply(
	ctx context.Context, live *unstructured.Unstructured, intent runtime.ApplyConfiguration, unset ...string,
) (outcome Outcome, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.record(&outcome, err) }()
	body, err := bodyOf(live, intent)
	if err != nil {
		return outcome, err
	}
	replaced, err := patch.ReadReplaced(live.GetAnnotations(), a.Module)
	if err != nil {
		return outcome, err
	}
	own, err := ownership.Applied(live, patch.FieldOwner(a.Module), "")
	if err != nil {
		return outcome, err
	}
	absent, err := absenceOf(live, body, own, unset)
	if err != nil {
		return outcome, err
	}
	intended, err := fingerprint(withNulls(body, absent.intended))
	if err != nil {
		return outcome, err
	}
	body = withNulls(body, absent.nulls)
	outcome.Changes = ownership.Changes(live, body)
	if err := a.annotate(body, replaced); err != nil {
		return outcome, err
	}

	h := a.history[live.GetUID()]
	inForce := len(absent.maps) == 0 && ownership.UpToDate(live.Object, body, own)
	switch {
	case h.cacheIsStale(live):
		outcome.Kind = Unchanged
		return outcome, nil
	case inForce || h.stillApplied(live, intended, own, absent):
		outcome.Kind = Unchanged
		a.recordApplied(live, intended, own)
		return outcome, nil
	}
	conflicts, complete := a.expectedConflicts(live, outcome.Changes)
	if h.applied(intended) {
		// The patch was in force: either it was reverted, or another client has taken a field.
		taken := conflicts
		if !complete && !a.ForceConflicts {
			_, err := a.send(ctx, patch.FieldOwner(a.Module), body, client.DryRunAll)
			if taken = ConflictsOf(err); err != nil && len(taken) == 0 {
				return outcome, explain(live, err)
			}
		}
		if !a.mayOverride(taken) {
			return a.conflicted(live, outcome, taken), nil
		}
		if pause := a.pause(h); pause > 0 {
			outcome.Kind, outcome.RetryAfter, outcome.RevertedBy = Withheld, pause, a.reverters(live, h)
			return outcome, nil
		}
	}

	if len(absent.values)+len(absent.maps) > 0 {
		bind(body, live)
	}
	var answer *unstructured.Unstructured
	if len(conflicts) == 0 || !complete || !a.mayOverride(conflicts) {
		answer, err = a.put(ctx, live, body, own)
		conflicts = ConflictsOf(err)
	}
	if len(conflicts) > 0 {
		if !a.mayOverride(conflicts) {
			return a.conflicted(live, outcome, conflicts), nil
		}
		if replaced, err = replace(live, replaced, conflicts); err != nil {
			return outcome, err
		}
		if err := a.annotate(body, replaced); err != nil {
			return outcome, err
		}
		// The replaced values are those that were read, so the write must hit the version that was read.
		bind(body, live)
		answer, err = a.put(ctx, live, body, own, client.ForceOwnership)
	}
	if err != nil {
		return outcome, explain(live, err)
	}
	for _, path := range absent.values {
		if has(answer.Object, path) {
			return outcome, hasDefault(path)
		}
	}
	if a.DryRun {
		outcome.Kind = WouldApply
		return outcome, nil
	}
	if answer, err = a.removeEmpty(ctx, answer, absent.maps); err != nil {
		return outcome, explain(live, err)
	}
	if own, err = ownership.Applied(answer, patch.FieldOwner(a.Module), ""); err != nil {
		return outcome, err
	}
	outcome.Kind = Applied
	a.recordApplied(answer, intended, own)
	return outcome, nil
}

func (a *Applier) conflicted(live *unstructured.Unstructured, outcome Outcome, conflicts []Conflict) Outcome {
	delete(a.history, live.GetUID())
	outcome.Kind, outcome.Conflicts = Conflicted, conflicts
	return outcome
}

// bodyOf returns the intent as decoded JSON, bound to the live object by its UID (U-SSA-7). It is a new object every time, because the
// API server's answer fills the one that was sent, and sending that again would claim all of it (U-SSA-5).
func bodyOf(live *unstructured.Unstructured, intent runtime.ApplyConfiguration) (map[string]any, error) {
	gvk := live.GroupVersionKind()
	if live.GetUID() == "" || gvk.Kind == "" || gvk.Version == "" {
		return nil, fmt.Errorf("%w: %s %s has no uid, kind or apiVersion", ErrIntent, gvk.Kind, client.ObjectKeyFromObject(live))
	}
	encoded, err := json.Marshal(intent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIntent, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIntent, err)
	}
	if u.GroupVersionKind() != gvk || u.GetName() != live.GetName() || u.GetNamespace() != live.GetNamespace() {
		return nil, fmt.Errorf("%w: it is for %s %s, the object is %s %s", ErrIntent,
			u.GroupVersionKind(), client.ObjectKeyFromObject(u), gvk, client.ObjectKeyFromObject(live))
	}
	u.SetUID(live.GetUID())
	unstructured.RemoveNestedField(u.Object, "status")
	return u.Object, nil
}

// annotate puts the replaced values into the body's annotation, so that the request that replaces them keeps them as well.
func (a *Applier) annotate(body map[string]any, replaced []patch.Replaced) error {
	if len(replaced) == 0 {
		return nil
	}
	text, err := patch.WriteReplaced(replaced)
	if err != nil {
		return err
	}
	return set(body, text, "metadata", "annotations", patch.ReplacedAnnotation(a.Module))
}

// bind makes the body valid only for the version of the object that was read.
func bind(body map[string]any, live *unstructured.Unstructured) {
	(&unstructured.Unstructured{Object: body}).SetResourceVersion(live.GetResourceVersion())
}

func set(body map[string]any, value any, path ...string) error {
	if err := unstructured.SetNestedField(body, value, path...); err != nil {
		return fmt.Errorf("%w: .%s: %w", ErrIntent, strings.Join(path, "."), err)
	}
	return nil
}

// send applies a copy of the body as the manager.
func (a *Applier) send(
	ctx context.Context, manager string, body map[string]any, opts ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(body)}
	opts = append(opts, client.FieldOwner(manager))
	if a.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
	return u, err
}

// merge sends a merge patch, for this version of the live object, as the manager.
func (a *Applier) merge(
	ctx context.Context, live *unstructured.Unstructured, manager string, body map[string]any,
) (*unstructured.Unstructured, error) {
	bind(body, live)
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding a merge patch: %w", err)
	}
	target := identity(live, nil)
	opts := []client.PatchOption{client.FieldOwner(manager)}
	if a.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	return target, a.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, data), opts...)
}

// put applies the body. Where the body no longer has the last fields inside a map or a list of another manager, the API server sets it to
// null and refuses that for a custom resource, so a merge patch removes those fields first.
func (a *Applier) put(
	ctx context.Context, live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, opts ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	owner := patch.FieldOwner(a.Module)
	answer, err := a.send(ctx, owner, body, opts...)
	if !apierrors.IsInvalid(err) {
		return answer, err
	}
	invalid := invalidFields(err)
	gone, lists := dropped(live, body, own, owner, invalid), droppedLists(live, body, own, owner, invalid)
	if len(gone)+len(lists) == 0 {
		return answer, err
	}
	removal := withNulls(nil, gone)
	for _, path := range lists {
		if err := set(removal, []any{}, path...); err != nil {
			return nil, err
		}
	}
	removed, err := a.merge(ctx, live, owner, removal)
	if err != nil || a.DryRun {
		return answer, err
	}
	if has(body, []string{"metadata", "resourceVersion"}) {
		bind(body, removed)
	}
	return a.send(ctx, owner, body, opts...)
}

// dropped returns the fields inside one of the given maps that only the owner owns and that are no longer in the body.
func dropped(live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, owner string, inside []string) [][]string {
	var paths [][]string
	own.Leaves().Iterate(func(p fieldpath.Path) {
		path, err := keys(p)
		isInside := slices.ContainsFunc(inside, func(field string) bool { return strings.HasPrefix(p.String(), field+".") })
		if err != nil || !free(body, path) || !isInside {
			return
		}
		if managers, err := ownership.ManagersAt(live, p); err == nil && slices.Equal(managers, []string{owner}) {
			paths = append(paths, path)
		}
	})
	return paths
}

// droppedLists returns those of the given lists that are not in the body and have only elements of which the owner is the only one.
func droppedLists(live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, owner string, fields []string) [][]string {
	var paths [][]string
	for _, field := range fields {
		at, path, err := parse(field)
		if err != nil || !free(body, path) {
			continue
		}
		list, _, err := unstructured.NestedSlice(live.Object, path...)
		if err != nil || len(list) == 0 {
			continue
		}
		inside := own
		for _, element := range at {
			inside = inside.WithPrefix(element)
		}
		elements := fieldpath.NewSet()
		inside.Iterate(func(p fieldpath.Path) {
			managers, err := ownership.ManagersAt(live, append(at.Copy(), p[0]))
			if err == nil && slices.Equal(managers, []string{owner}) {
				elements.Insert(p[:1])
			}
		})
		if elements.Size() == len(list) {
			paths = append(paths, path)
		}
	}
	return paths
}

// invalidFields returns the fields that the API server calls invalid, as dotted paths.
func invalidFields(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" {
			fields = append(fields, "."+strings.TrimPrefix(cause.Field, "."))
		}
	}
	return fields
}

// parse returns the path of a field, and its names as the keys of nested maps.
func parse(field string) (fieldpath.Path, []string, error) {
	path, err := ownership.ParsePath(field)
	if err != nil {
		return nil, nil, err
	}
	names, err := keys(path)
	return path, names, err
}

// keys returns a path as the keys of nested maps; a path through an element of a list is an error.
func keys(path fieldpath.Path) ([]string, error) {
	out := make([]string, len(path))
	for i, element := range path {
		if element.FieldName == nil {
			return nil, fmt.Errorf("%w: %s", ownership.ErrFieldPath, path)
		}
		out[i] = *element.FieldName
	}
	return out, nil
}

// record counts the outcome; an error makes it Failed.
func (a *Applier) record(outcome *Outcome, err error) {
	if err != nil {
		outcome.Kind = Failed
	}
	if a.Recorder == nil {
		return
	}
	a.Recorder.RecordApply(a.Module, outcome.Kind)
	for _, c := range outcome.Conflicts {
		a.Recorder.RecordConflict(a.Module, c.Manager)
	}
}
