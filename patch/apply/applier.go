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
	// ErrGone is returned when the object was deleted, or deleted and made again, since it was read.
	ErrGone = errors.New("object is gone or was replaced since it was read")
	// ErrStale is returned when the object changed between reading it and a write that depends on what was read. Reading it
	// again and deciding again is the remedy.
	ErrStale = errors.New("object changed since it was read")
	// ErrNotLive is returned for a live object without UID, kind or apiVersion: one that was not read from an API server.
	ErrNotLive = errors.New("not a live object")
	// ErrIntent is returned for an intent that does not belong to the live object.
	ErrIntent = errors.New("intent does not fit the live object")
)

// Overridable names a field whose value a module may take from a manager that only ever writes it when it creates the
// object and never again.
type Overridable struct {
	Field   string
	Manager string
}

// Conflict is one field that somebody else owns.
type Conflict struct {
	Field   string
	Manager string
}

// Kind tells how an Apply or Release ended.
type Kind string

// The outcomes.
const (
	// Unchanged means that everything was already as intended. Nothing was sent.
	Unchanged Kind = "unchanged"
	// Applied means that the API server accepted a write.
	Applied Kind = "applied"
	// Released means that fields were given back.
	Released Kind = "released"
	// Conflicted means that somebody else owns a field; nothing was written.
	Conflicted Kind = "conflict"
	// Withheld means that the patch was taken off by somebody, and it is too early to try again; nothing was sent.
	Withheld Kind = "reverted"
	// WouldApply and WouldRelease mean that a dry run was accepted; nothing was written.
	WouldApply   Kind = "dry-run-apply"
	WouldRelease Kind = "dry-run-release"
	// Refused means that the API server answered with an error.
	Refused Kind = "error"
)

// Outcome is what happened to one object.
type Outcome struct {
	Kind Kind
	// Changes lists every field of the intent beside the live object as it was read.
	Changes []ownership.Change
	// Conflicts is set for Conflicted.
	Conflicts []Conflict
	// Reverters are the managers that wrote the object since the patch was applied; set for Withheld. Empty when the
	// API server does not know.
	Reverters []string
	// RetryAfter is when a withheld patch may be tried again.
	RetryAfter time.Duration
}

// Recorder counts outcomes; patch/metrics implements it.
type Recorder interface {
	RecordApply(module string, kind Kind)
	RecordConflict(module, fieldManager string)
}

// Applier writes the patches of one module. It is safe for concurrent use.
type Applier struct {
	// Client talks to the API server.
	Client client.Client
	// Module is the module's name; it determines the field owner and the annotation of replaced values.
	Module string
	// Overridable lists what may be taken over without --force-conflicts.
	Overridable []Overridable
	// ForceConflicts takes every contested field, remembering what it replaced.
	ForceConflicts bool
	// DryRun asks the API server what would happen and writes nothing.
	DryRun bool
	// RevertPause is how long a patch that somebody took off is left off before it is tried once more. It doubles with
	// every further revert, up to MaxRevertPause. Zero means DefaultRevertPause.
	RevertPause time.Duration
	// Recorder is told every outcome; nil for none.
	Recorder Recorder
	// Clock is the time; nil for the real one.
	Clock clock.PassiveClock

	mu      sync.Mutex
	history map[types.UID]*history
	// released is the resourceVersion at which we last let go of an object.
	released map[types.UID]string
}

const (
	// DefaultRevertPause keeps a patch that is being fought over at one write in five minutes.
	DefaultRevertPause = 5 * time.Minute
	// MaxRevertPause bounds the doubling.
	MaxRevertPause = time.Hour

	maxDoublings = 32
)

// Apply puts the intent on the live object. The intent must be freshly built by the caller; live must be the object as it
// was read, with its managedFields. A context error or an API error is returned as it is, wrapped.
//
// What is in force already is not sent (R-SNO-4), and a field that somebody else owns is a Conflict and not taken (R-SNO-5).
//
// unset names fields, such as ".spec.template.spec.nodeSelector", that shall be absent beside the intent; an apply alone removes
// nothing that somebody else owns. The rules are those of the intent: what anybody else owns is a conflict, and then nothing is
// written; what may be overridden is remembered, and Release puts it back. A field that is absent already costs nothing, and
// it makes no difference whether it is named again: once absent, it is ours to keep absent until Release, and a manager that
// writes it again is one that reverts. It must be a value that is owned as a whole (a scalar, or an atomic map or list)
// without a default, or on a built-in type a map in which everything is named too; anything else is an ErrUnset.
//
// What the API server does: on a built-in type, null in an applied body removes the field, conflicts like any other value, and
// leaves the applier as the owner of the absent field; all in one request. The maps around it stay, emptied ("podAntiAffinity:
// {}"); one that is named is removed by a merge patch afterwards. On a custom resource null is no valid value of most fields, so the
// field is removed by a merge patch after the request that remembers it, both bound to what was read; then nobody owns it.
func (a *Applier) Apply(ctx context.Context, live *unstructured.Unstructured, intent runtime.ApplyConfiguration, unset ...string) (outcome Outcome, err error) {
	defer func() { a.record(outcome, err) }()
	body, err := a.body(live, intent)
	if err != nil {
		return Outcome{Kind: Refused}, err
	}
	replaced, err := patch.ReadReplaced(live.GetAnnotations(), a.Module)
	if err != nil {
		return Outcome{Kind: Refused}, err
	}
	own, err := ownership.Applied(live, patch.FieldOwner(a.Module), "")
	if err != nil {
		return Outcome{Kind: Refused}, err
	}
	replaced = a.unmarked(replaced, body)
	off, err := a.absent(live, body, own, replaced, unset)
	if err != nil {
		return Outcome{Kind: Refused}, err
	}
	whole := without(body, off.meant)
	intended := fingerprint(whole)
	outcome.Changes = ownership.Changes(live, without(body, off.sent))
	if err := a.remember(body, replaced); err != nil {
		return Outcome{Kind: Refused}, err
	}
	if a.behind(live) {
		outcome.Kind = Unchanged
		return outcome, nil
	}
	if (len(off.emptied) == 0 && ownership.Holds(live.Object, without(body, off.held), own)) || a.stands(live, intended, own, off) {
		outcome.Kind = Unchanged
		a.settled(live, intended, own)
		return outcome, nil
	}
	if conflicts, err := a.contested(ctx, live, body, off, intended, outcome.Changes); err != nil || len(conflicts) > 0 {
		if err != nil {
			outcome.Kind = Refused
			return outcome, a.explain(live, err)
		}
		a.Forget(live.GetUID())
		outcome.Kind, outcome.Conflicts = Conflicted, conflicts
		return outcome, nil
	}
	if pause, reverted := a.reverted(live, intended); reverted {
		outcome.Kind, outcome.RetryAfter, outcome.Reverters = Withheld, pause, a.reverters(live, intended)
		return outcome, nil
	}

	if len(off.named)+len(off.emptied) > 0 {
		if err := bind(body, live.GetResourceVersion()); err != nil {
			return Outcome{Kind: Refused}, err
		}
	}
	var answer *unstructured.Unstructured
	conflicts, err := a.foreseen(live, outcome.Changes)
	if err != nil {
		return Outcome{Kind: Refused}, err
	}
	if len(conflicts) == 0 {
		answer, err = a.put(ctx, live, body, off.sent, own, live.GetResourceVersion())
		conflicts = ConflictsOf(err)
	}
	if len(conflicts) > 0 {
		if !a.mayOverride(conflicts) {
			a.Forget(live.GetUID())
			outcome.Kind, outcome.Conflicts = Conflicted, conflicts
			return outcome, nil
		}
		if replaced, err = replace(live, replaced, conflicts); err != nil {
			return Outcome{Kind: Refused}, err
		}
		if err := a.remember(body, replaced); err != nil {
			return Outcome{Kind: Refused}, err
		}
		// The remembered values are those that were read, so the write must hit the object that was read.
		if err := bind(body, live.GetResourceVersion()); err != nil {
			return Outcome{Kind: Refused}, err
		}
		answer, err = a.put(ctx, live, body, off.sent, own, live.GetResourceVersion(), client.ForceOwnership)
	}
	if err != nil {
		outcome.Kind = Refused
		return outcome, a.explain(live, err)
	}
	for _, path := range off.named {
		if has(answer.Object, path) {
			outcome.Kind = Refused
			return outcome, fmt.Errorf("%w: .%s has a default of the API server; intend a value instead", ErrUnset, strings.Join(path, "."))
		}
	}
	if a.DryRun {
		outcome.Kind = WouldApply
		return outcome, nil
	}
	if answer, err = a.empty(ctx, live, answer, off.emptied); err != nil {
		outcome.Kind = Refused
		return outcome, a.explain(live, err)
	}
	outcome.Kind = Applied
	return outcome, a.applied(live, answer, intended)
}

// body is the intent as decoded JSON, bound to the live object by its UID (U-SSA-7). It is a new object every time: an
// intent that was sent once comes back filled with everything the API server knows, and sending that again would claim
// all of it (U-SSA-5).
func (a *Applier) body(live *unstructured.Unstructured, intent runtime.ApplyConfiguration) (map[string]any, error) {
	gvk := live.GroupVersionKind()
	if live.GetUID() == "" || gvk.Kind == "" || gvk.Version == "" {
		return nil, fmt.Errorf("%w: %s %s has no uid, kind or apiVersion", ErrNotLive, gvk.Kind, client.ObjectKeyFromObject(live))
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

// remember puts the replaced values into the body's annotation, so that they travel in the same request that replaces them.
func (a *Applier) remember(body map[string]any, replaced []patch.Replaced) error {
	if len(replaced) == 0 {
		return nil
	}
	text, err := patch.WriteReplaced(replaced)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(body, text, "metadata", "annotations", patch.ReplacedAnnotation(a.Module)); err != nil {
		return fmt.Errorf("%w: metadata.annotations: %w", ErrIntent, err)
	}
	return nil
}

// bind makes the body valid for one version of the object only.
func bind(body map[string]any, resourceVersion string) error {
	if err := unstructured.SetNestedField(body, resourceVersion, "metadata", "resourceVersion"); err != nil {
		return fmt.Errorf("%w: %w", ErrIntent, err)
	}
	return nil
}

func (a *Applier) send(ctx context.Context, body map[string]any, opts ...client.ApplyOption) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: deepCopy(body)}
	opts = append(opts, client.FieldOwner(patch.FieldOwner(a.Module)))
	if a.DryRun {
		opts = append(opts, client.DryRunAll)
	}
	err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
	return u, err
}

// put applies the body, and helps the API server over one thing that it cannot do: when we let go of the last fields inside a
// map that somebody else owns, it leaves null instead of an empty map, and refuses that for a custom resource. Those fields
// are then removed by a merge patch first. absent is what shall not be there.
func (a *Applier) put(ctx context.Context, live *unstructured.Unstructured, body map[string]any, absent [][]string, own *fieldpath.Set, resourceVersion string, opts ...client.ApplyOption) (*unstructured.Unstructured, error) {
	answer, err := a.send(ctx, without(body, absent), opts...)
	switch {
	case !apierrors.IsInvalid(err):
		return answer, err
	case len(absent) > 0:
		return a.putThenRemove(ctx, live, body, absent, own, resourceVersion, opts...)
	}
	emptied := map[string]any{}
	for _, path := range dropped(live, body, own, patch.FieldOwner(a.Module), invalidFields(err)) {
		if err := unstructured.SetNestedField(emptied, nil, path...); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIntent, err)
		}
	}
	if len(emptied) == 0 {
		return answer, err
	}
	next, err := a.merge(ctx, live, patch.FieldOwner(a.Module), emptied, resourceVersion)
	if err != nil || a.DryRun {
		return answer, err
	}
	if _, bound, _ := unstructured.NestedString(body, "metadata", "resourceVersion"); bound {
		if err := bind(body, next); err != nil {
			return nil, err
		}
	}
	return a.send(ctx, body, opts...)
}

// dropped lists the fields that are ours alone, no longer in the body, and inside one of the given maps.
func dropped(live *unstructured.Unstructured, body map[string]any, own *fieldpath.Set, owner string, inside []string) [][]string {
	var paths [][]string
	own.Leaves().Iterate(func(p fieldpath.Path) {
		path, err := names(p.String())
		if err != nil || !slices.ContainsFunc(inside, func(field string) bool { return strings.HasPrefix(p.String(), field+".") }) {
			return
		}
		if _, kept, err := unstructured.NestedFieldNoCopy(body, path...); err != nil || kept {
			return
		}
		if managers, err := ownership.Managers(live, p.String()); err == nil && slices.Equal(managers, []string{owner}) {
			paths = append(paths, path)
		}
	})
	return paths
}

// invalidFields are the fields that the API server calls invalid, as dotted paths.
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

// names is the path of a field as the keys of nested maps.
func names(field string) ([]string, error) {
	path, err := ownership.ParsePath(field)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(path))
	for _, element := range path {
		out = append(out, *element.FieldName)
	}
	return out, nil
}

func (a *Applier) record(outcome Outcome, err error) {
	if a.Recorder == nil {
		return
	}
	if err != nil {
		outcome.Kind = Refused
	}
	a.Recorder.RecordApply(a.Module, outcome.Kind)
	for _, c := range outcome.Conflicts {
		a.Recorder.RecordConflict(a.Module, c.Manager)
	}
}

func (a *Applier) now() time.Time {
	if a.Clock == nil {
		return time.Now()
	}
	return a.Clock.Now()
}

func deepCopy(body map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: body}).DeepCopy().Object
}
