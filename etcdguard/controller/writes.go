package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// writer carries out one decision at a time.
type writer struct {
	client   client.Client
	recorder apply.Recorder
	dryRun   bool
	// force takes fields of the guard from anybody.
	force bool
}

// target is the object that a decision is about, as it was read. It is nil where the decision makes it.
func (f found) target(action etcdguard.Action) *unstructured.Unstructured {
	switch action {
	case etcdguard.Claim, etcdguard.Unclaim:
		return f.version
	case etcdguard.ApplyDeployment, etcdguard.TidyDeployment, etcdguard.DeleteDeployment, etcdguard.DisownDeployment:
		return f.deployment
	case etcdguard.ApplyBudget, etcdguard.TidyBudget, etcdguard.DeleteBudget, etcdguard.DisownBudget:
		return f.budget
	case etcdguard.Nothing:
	}
	return nil
}

// write carries out the decision. It returns nothing when that is done and the next decision can be made, or what there is to say when
// it cannot. An error that is an apply.ErrStale means that something has changed since it was read: read again, decide again.
func (w *writer) write(ctx context.Context, f found, d etcdguard.Decision) (said *patch.Result, err error) {
	target := f.target(d.Action)
	switch d.Action {
	case etcdguard.Nothing:
		return nil, nil
	case etcdguard.Claim:
		said, err = w.apply(ctx, target, d, d.ClusterVersion)
	case etcdguard.Unclaim:
		err = w.unclaim(ctx, target)
	case etcdguard.ApplyDeployment:
		said, err = w.apply(ctx, target, d, d.Deployment)
	case etcdguard.ApplyBudget:
		said, err = w.apply(ctx, target, d, d.Budget)
	case etcdguard.TidyDeployment, etcdguard.TidyBudget:
		err = w.tidy(ctx, target, d.Annotations)
	case etcdguard.DeleteDeployment, etcdguard.DeleteBudget:
		err = w.remove(ctx, target)
	case etcdguard.DisownDeployment, etcdguard.DisownBudget:
		err = w.disown(ctx, target, d.HandTo)
	}
	err = explain(err, d)
	log := logr.FromContextOrDiscard(ctx)
	switch {
	case said != nil:
		w.record(apply.Conflicted)
	case err != nil:
		w.record(apply.Refused)
		if errors.Is(err, apply.ErrStale) {
			log.V(1).Info("Write was refused because something has changed; deciding anew", "action", string(d.Action), "cause", err.Error())
		}
	case w.dryRun:
		w.record(apply.WouldApply)
		log.Info("Would write", "action", string(d.Action))
		said = &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: " + would(d.Action)}
	default:
		w.record(apply.Applied)
		log.Info("Written", "action", string(d.Action), "because", d.Result.Reason)
	}
	return said, err
}

// apply applies without force first. Only where everybody who objects is one from whom the decision may take is it sent again with
// force, bound to the very object that the answer was about.
func (w *writer) apply(ctx context.Context, target *unstructured.Unstructured, d etcdguard.Decision, intent runtime.ApplyConfiguration) (*patch.Result, error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(intent)
	if err != nil {
		return nil, fmt.Errorf("reading an intent: %w", err)
	}
	for _, field := range d.Unset {
		if err := unstructured.SetNestedField(body, nil, strings.Split(strings.TrimPrefix(field, "."), ".")...); err != nil {
			return nil, fmt.Errorf("unsetting %s: %w", field, err)
		}
	}
	bound := &unstructured.Unstructured{Object: body}
	if !d.Create {
		bound.SetUID(target.GetUID())
		bound.SetResourceVersion(target.GetResourceVersion())
	}
	err = w.send(ctx, bound)
	conflicts := apply.ConflictsOf(err)
	if len(conflicts) == 0 || d.Create {
		return nil, err // what somebody made while it was missing is decided on anew
	}
	guard := d.Action != etcdguard.Claim
	i := slices.IndexFunc(conflicts, func(c apply.Conflict) bool { return !slices.Contains(d.TakeFrom, c.Manager) && (!guard || !w.force) })
	switch {
	case i < 0:
		return nil, w.send(ctx, bound, client.ForceOwnership)
	case w.recorder != nil:
		w.recorder.RecordConflict(etcdguard.Name, conflicts[i].Manager)
	}
	result := etcdguard.OverridesOwnedByOther(conflicts[i].Manager)
	if guard {
		result = ptr.To(patch.OwnedByOther(conflicts[i].Field, conflicts[i].Manager))
	}
	return result, nil
}

// send applies a copy, because what is sent comes back filled with what the API server knows.
func (w *writer) send(ctx context.Context, body *unstructured.Unstructured, opts ...client.ApplyOption) error {
	opts = append(opts, client.FieldOwner(etcdguard.FieldOwner))
	if w.dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body.DeepCopy()), opts...)
}

// unclaim applies nothing, which takes off what is ours alone.
func (w *writer) unclaim(ctx context.Context, version *unstructured.Unstructured) error {
	nothing := versionObject.Unstructured()
	nothing.SetUID(version.GetUID())
	nothing.SetResourceVersion(version.GetResourceVersion())
	return w.send(ctx, nothing)
}

// tidy removes annotations, whoever owns them.
func (w *writer) tidy(ctx context.Context, target *unstructured.Unstructured, keys []string) error {
	annotations := map[string]any{}
	for _, key := range keys {
		annotations[key] = nil
	}
	return w.patch(ctx, target, types.MergePatchType, map[string]any{"metadata": map[string]any{
		"uid": target.GetUID(), "resourceVersion": target.GetResourceVersion(), "annotations": annotations,
	}})
}

// disown changes whose the fields are, and no value.
func (w *writer) disown(ctx context.Context, target *unstructured.Unstructured, to string) error {
	entries, err := etcdguard.Disowned(target.GetManagedFields(), to)
	if err != nil {
		return err
	}
	return w.patch(ctx, target, types.JSONPatchType, []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": target.GetUID()},
		{"op": "test", "path": "/metadata/resourceVersion", "value": target.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
	})
}

func (w *writer) patch(ctx context.Context, target *unstructured.Unstructured, kind types.PatchType, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	opts := []client.PatchOption{client.FieldOwner(etcdguard.FieldOwner)}
	if w.dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return w.client.Patch(ctx, target.DeepCopy(), client.RawPatch(kind, encoded), opts...)
}

func (w *writer) remove(ctx context.Context, target *unstructured.Unstructured) error {
	opts := []client.DeleteOption{
		client.Preconditions{UID: ptr.To(target.GetUID()), ResourceVersion: ptr.To(target.GetResourceVersion())},
		client.PropagationPolicy(metav1.DeletePropagationBackground),
	}
	if w.dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return w.client.Delete(ctx, target.DeepCopy(), opts...)
}

func (w *writer) record(kind apply.Kind) {
	if w.recorder != nil {
		w.recorder.RecordApply(etcdguard.Name, kind)
	}
}

// errNoNamespace is returned for a guard that cannot be made because its namespace is missing or going.
var errNoNamespace = errors.New("the namespace is missing or being deleted")

// explain tells a write that came too late from one that is refused for good.
func explain(err error, d etcdguard.Decision) error {
	switch {
	case err == nil:
		return nil
	case d.Create && (apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)):
		return fmt.Errorf("%w: %w", errNoNamespace, err)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), isFailedTest(err), isOtherUID(err):
		return fmt.Errorf("%w: %w", apply.ErrStale, err)
	}
	return err
}

// isFailedTest tells that a test in a JSON patch failed. The API server answers 422 with a text.
func isFailedTest(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "test") && strings.Contains(err.Error(), "failed")
}

// isOtherUID tells that the object was made anew, of which the API server says that its UID is immutable.
func isOtherUID(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.uid: ")
}

const namespacePause = time.Minute

// failed turns the error of a write into a result.
func (w *writer) failed(action etcdguard.Action, err error) *patch.Result {
	if errors.Is(err, errNoNamespace) {
		return &patch.Result{State: patch.Waiting, Reason: etcdguard.ReasonWaitingForObject, After: namespacePause,
			Message: "The namespace " + etcdguard.Namespace + " is missing or being deleted; the guard is made when it is there"}
	}
	words := guardWords
	if action == etcdguard.Claim || action == etcdguard.Unclaim {
		words = versionWords
	}
	return words.Failed(etcdguard.Name, err)
}
