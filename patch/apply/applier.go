// SPDX-License-Identifier: Apache-2.0

// Package apply writes patches with server-side apply, and releases them.
//
// A patch writes only an existing object, known by its UID (U-SSA-7), and takes no field from a person or an unknown
// tool (R-SNO-5). Creation-time defaults are taken from listed managers only, and recorded in an annotation by the same
// request. An intent that is in force is not sent again (R-SNO-4), a release restores replaced values (R-SNO-6), and a
// reverted patch is withheld for a while (R-SNO-9).
//
// Intents are apply configurations: a typed object would claim every field without omitempty (U-SSA-6).
//
// Apply can make fields of built-in types absent, such as ".spec.template.spec.nodeSelector". They stay absent until
// Release, also if a later call does not name them. A field must be a scalar, an atomic map or list without a default,
// or a map whose members are all named as well, which a second request removes. null in the applied body removes the
// others, and managedFields keep the owner of the absence until a client writes the field. Custom resources reject
// null; maps with owned members and fields with a default ignore it.
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

var (
	// ErrGone is returned if the object was deleted since it was read.
	ErrGone = errors.New("object was deleted or recreated since it was read")
	// ErrStale is returned if the object was changed, or recreated, since it was read: every request is bound to its
	// resourceVersion. Read it again and decide again.
	ErrStale = errors.New("object was changed since it was read")
	// ErrIntent is returned for an intent of another object, and for an object without UID, kind or apiVersion.
	ErrIntent = errors.New("intent does not fit the live object")
)

// Overridable is a field with a creation-time default of a manager, which may be taken.
type Overridable struct{ Field, Manager string }

// Conflict is one field that another manager owns.
type Conflict struct{ Field, Manager string }

// Kind is the outcome of an Apply or a Release.
type Kind string

// The outcomes. Only Applied and Released are writes; nothing is sent for Unchanged and Withheld.
const (
	Unchanged    Kind = "unchanged"
	Applied      Kind = "applied"
	Released     Kind = "released"
	Conflicted   Kind = "conflict"        // another manager owns a field
	Withheld     Kind = "reverted"        // a reverted patch, until the back-off ends
	WouldApply   Kind = "dry-run-apply"   // the API server accepted a dry run
	WouldRelease Kind = "dry-run-release" // the API server accepted a dry run
	Failed       Kind = "error"
)

// Outcome is the outcome for one object.
type Outcome struct {
	Kind Kind
	// Changes compares the fields of the intent with the live object.
	Changes   []ownership.Change
	Conflicts []Conflict // set for Conflicted
	// RevertedBy are the known managers that wrote the object since the patch was in force.
	RevertedBy []string
	RetryAfter time.Duration // set for Withheld
}

// Recorder counts outcomes; patch/metrics implements it.
type Recorder interface {
	RecordApply(module string, kind Kind)
	RecordConflict(module, fieldManager string)
}

// Applier writes the patches of one module, one object at a time. It is safe for concurrent use.
type Applier struct {
	Client client.Client
	// Module determines the field owner and the annotation.
	Module string
	// Overridable lists fields that may be taken without ForceConflicts.
	Overridable []Overridable
	// ForceConflicts takes all fields and records their values in the annotation.
	ForceConflicts bool
	DryRun         bool     // sends dry runs only
	Recorder       Recorder // nil for none
	// Now is the clock of the back-off after a revert; nil for time.Now.
	Now func() time.Time

	mu      sync.Mutex
	history map[types.UID]*history
}

// Apply applies the intent to the live object, which must be as it was read, with its managedFields. It sends nothing
// if the intent is in force (R-SNO-4). A field of another manager is a conflict (R-SNO-5). unset names fields that must
// be absent until Release, see the package's documentation; others are an ErrUnset. API errors are wrapped.
func (a *Applier) Apply(
	ctx context.Context, live *unstructured.Unstructured, intent runtime.ApplyConfiguration, unset ...string,
) (outcome Outcome, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.record(&outcome, err) }()
	h := a.history[live.GetUID()]
	p, err := a.plan(live, intent, unset, h)
	if err != nil {
		return outcome, err
	}
	outcome.Changes = p.changes
	if p.first == nothing {
		outcome.Kind = Unchanged
		if !p.stale && !h.mayBeEnded(live) {
			a.recordApplied(live, p.intended, p.own)
		}
		return outcome, nil
	}
	if p.reverted {
		taken, err := a.taken(ctx, live, p)
		if err != nil {
			return outcome, err
		}
		if !a.mayOverride(taken) {
			return a.conflicted(live, outcome, taken), nil
		}
		if backoff := a.backoff(h); backoff > 0 {
			outcome.Kind, outcome.RetryAfter, outcome.RevertedBy = Withheld, backoff, a.reverters(live, h)
			return outcome, nil
		}
	}
	return a.send(ctx, live, p, outcome)
}

// taken returns the fields of a reverted patch that other managers own. Where managedFields do not show all, a dry run
// does, unless any may be taken.
func (a *Applier) taken(ctx context.Context, live *unstructured.Unstructured, p *plan) ([]Conflict, error) {
	if p.complete || a.ForceConflicts {
		return p.conflicts, nil
	}
	_, err := a.request(ctx, patch.FieldOwner(a.Module), p.body, client.DryRunAll)
	conflicts := ConflictsOf(err)
	if err != nil && len(conflicts) == 0 {
		return nil, explain(live, err)
	}
	return conflicts, nil
}

// send sends the requests of a plan. Replaced values are recorded as they were read, so each write must hit the version
// that was read.
func (a *Applier) send(ctx context.Context, live *unstructured.Unstructured, p *plan, outcome Outcome) (Outcome, error) {
	if h := a.history[live.GetUID()]; h != nil && !h.applied(p.intended) {
		a.recordUnanswered(live)
	}
	bind(p.body, live)
	answer, conflicts := live, p.conflicts
	var err error
	if p.first == unforced {
		answer, err = a.put(ctx, live, p.body, p.own)
		conflicts = ConflictsOf(err)
	}
	if len(conflicts) > 0 {
		if conflicts = a.withoutAnnotation(live, conflicts); !a.mayOverride(conflicts) {
			return a.conflicted(live, outcome, conflicts), nil
		}
		replaced, failed := replace(live, p.replaced, conflicts)
		if failed == nil {
			failed = a.annotate(p.body, replaced)
		}
		if failed != nil {
			return outcome, failed
		}
		answer, err = a.put(ctx, live, p.body, p.own, client.ForceOwnership)
	}
	if err != nil {
		return outcome, explain(live, err)
	}
	for _, path := range p.absent.values {
		if has(answer.Object, path) {
			return outcome, hasDefault(path)
		}
	}
	if a.DryRun {
		outcome.Kind = WouldApply
		return outcome, nil
	}
	if answer, err = a.removeEmpty(ctx, answer, p.absent.maps); err != nil {
		return outcome, explain(live, err)
	}
	own, err := ownership.Applied(answer, patch.FieldOwner(a.Module), "")
	if err != nil {
		return outcome, err
	}
	outcome.Kind = Applied
	a.recordApplied(answer, p.intended, own)
	return outcome, nil
}

func (a *Applier) conflicted(live *unstructured.Unstructured, outcome Outcome, conflicts []Conflict) Outcome {
	delete(a.history, live.GetUID())
	outcome.Kind, outcome.Conflicts = Conflicted, conflicts
	return outcome
}

// bodyOf returns the intent as decoded JSON, bound to the live object by its UID (U-SSA-7). It is a new object each
// time: the API server's answer fills it, and sending that again would claim all of it (U-SSA-5).
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

// annotate adds the annotation, so that the request that replaces values also records them.
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

// bind makes the body valid only for the version that was read.
func bind(body map[string]any, live *unstructured.Unstructured) {
	(&unstructured.Unstructured{Object: body}).SetResourceVersion(live.GetResourceVersion())
}

func set(body map[string]any, value any, path ...string) error {
	if err := unstructured.SetNestedField(body, value, path...); err != nil {
		return fmt.Errorf("%w: .%s: %w", ErrIntent, strings.Join(path, "."), err)
	}
	return nil
}

// request applies a copy of the body.
func (a *Applier) request(
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

// merge sends a merge patch that is valid only for the version that was read.
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

// put applies the body. If the body drops the last fields in a map or list of another manager, the API server sets that
// to null, which it rejects for a custom resource. A merge patch then removes the fields first.
func (a *Applier) put(
	ctx context.Context, live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, opts ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	owner := patch.FieldOwner(a.Module)
	answer, err := a.request(ctx, owner, body, opts...)
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
	return a.request(ctx, owner, body, opts...)
}

// dropped returns the fields inside the given maps that the body drops and that have no other owner.
func dropped(live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, owner string, inside []string) [][]string {
	var paths [][]string
	own.Leaves().Iterate(func(p fieldpath.Path) {
		path, err := keys(p)
		isInside := slices.ContainsFunc(inside, func(field string) bool { return strings.HasPrefix(p.String(), field+".") })
		if err != nil || !isFree(body, path) || !isInside {
			return
		}
		if managers, err := ownership.ManagersAt(live, p); err == nil && slices.Equal(managers, []string{owner}) {
			paths = append(paths, path)
		}
	})
	return paths
}

// droppedLists returns those of the given lists that the body drops and whose elements have no other owner.
func droppedLists(live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, owner string, fields []string) [][]string {
	var paths [][]string
	for _, field := range fields {
		at, path, err := parse(field)
		if err != nil || !isFree(body, path) {
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

// invalidFields returns the dotted paths of the fields in an Invalid error.
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

// parse returns a path, also as keys of nested maps.
func parse(field string) (fieldpath.Path, []string, error) {
	path, err := ownership.ParsePath(field)
	if err != nil {
		return nil, nil, err
	}
	names, err := keys(path)
	return path, names, err
}

// keys returns a path as keys of nested maps; a list element in it is an error.
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
