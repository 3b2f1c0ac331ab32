package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solonode/sno/approver"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/apply"
)

// writer carries out one decision at a time.
type writer struct {
	client client.Client
	// deployment and version write what patch/apply can give back.
	deployment, version *apply.Applier
	recorder            apply.Recorder
	dryRun              bool
}

// write carries out the decision. It returns nothing when that is done and the next decision can be made, or what there is to say when
// it cannot. An error that is an apply.ErrStale means that something has changed since it was read: read again, decide again.
func (w *writer) write(ctx context.Context, f found, d approver.Decision) (said *patch.Result, err error) {
	words := wordsOf(d.Action)
	switch d.Action {
	case approver.Nothing:
		return nil, nil
	case approver.ApplyConfig, approver.RestoreConfig, approver.DeleteConfig:
		return w.config(ctx, f.config, d)
	case approver.ApplyDeployment:
		return w.put(ctx, w.deployment, words, f.deployment, d.Deployment)
	case approver.Claim:
		said, err = w.put(ctx, w.version, words, f.version, d.ClusterVersion)
		if said != nil && said.Reason == patch.ReasonFieldOwnedByOther {
			said = approver.OverrideOwnedByOther()
		}
		return said, err
	case approver.ReleaseDeployment:
		return w.release(ctx, w.deployment, words, f.deployment, d)
	case approver.Unclaim:
		return w.release(ctx, w.version, words, f.version, d)
	}
	return nil, nil
}

func (w *writer) put(
	ctx context.Context, by *apply.Applier, words apply.Words, live *unstructured.Unstructured, intent runtime.ApplyConfiguration,
) (*patch.Result, error) {
	outcome, err := by.Apply(ctx, live, intent)
	if err != nil {
		return nil, err
	}
	return words.Result(ctx, approver.Name, outcome, nil), nil
}

func (w *writer) release(
	ctx context.Context, by *apply.Applier, words apply.Words, live *unstructured.Unstructured, d approver.Decision,
) (*patch.Result, error) {
	outcome, err := by.Release(ctx, live, apply.ReleaseOptions{})
	if err != nil {
		return nil, err
	}
	return words.Released(approver.Name, *d.Result, outcome, nil), nil
}

// config writes the configuration. patch/apply is not for this: the text is one value, of which most is not ours.
func (w *writer) config(ctx context.Context, live *unstructured.Unstructured, d approver.Decision) (*patch.Result, error) {
	var err error
	switch d.Action {
	case approver.ApplyConfig:
		err = w.applyConfig(ctx, d)
	case approver.RestoreConfig:
		err = w.restoreConfig(ctx, live, d)
	case approver.DeleteConfig:
		opts := []client.DeleteOption{client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())}}
		if w.dryRun {
			opts = append(opts, client.DryRunAll)
		}
		err = w.client.Delete(ctx, live.DeepCopy(), opts...)
	case approver.Nothing, approver.ApplyDeployment, approver.ReleaseDeployment, approver.Claim, approver.Unclaim:
	}
	if err = explain(err); err != nil {
		w.record(apply.Refused)
		return nil, err
	}
	if !w.dryRun {
		w.record(apply.Applied)
		logr.FromContextOrDiscard(ctx).Info("Configuration of the stock approver written", "action", string(d.Action), "because", d.Result.Reason)
		return nil, nil
	}
	w.record(apply.WouldApply)
	return &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: " + would(d.Action)}, nil
}

// applyConfig takes the text from whoever owns it: all that they wrote stays in it, and the intent is bound to what was read. Where there
// was no ConfigMap, what somebody made meanwhile is not taken, but decided on.
func (w *writer) applyConfig(ctx context.Context, d approver.Decision) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.ConfigMap)
	if err != nil {
		return fmt.Errorf("reading an intent: %w", err)
	}
	opts := []client.ApplyOption{client.FieldOwner(approver.FieldOwner)}
	if !d.Create {
		opts = append(opts, client.ForceOwnership)
	}
	if w.dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: body}), opts...)
}

// restoreConfig writes as the manager that owned the text before.
func (w *writer) restoreConfig(ctx context.Context, live *unstructured.Unstructured, d approver.Decision) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "annotations": map[string]any{approver.EditAnnotation: nil},
		},
		"data": map[string]any{approver.ConfigKey: d.Text},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	opts := []client.PatchOption{client.FieldOwner(d.HandTo)}
	if w.dryRun {
		opts = append(opts, client.DryRunAll)
	}
	return w.client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, body), opts...)
}

func (w *writer) record(kind apply.Kind) {
	if w.recorder != nil {
		w.recorder.RecordApply(approver.Name, kind)
	}
}

// explain tells a write that came too late from one that is refused for good.
func explain(err error) error {
	if err != nil && (apierrors.IsConflict(err) || apierrors.IsNotFound(err) || isOtherUID(err)) {
		return fmt.Errorf("%w: %w", apply.ErrStale, err)
	}
	return err
}

// isOtherUID tells that the object was made anew, of which the API server says that its UID is immutable.
func isOtherUID(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.uid: ")
}

// stale tells that reading and deciding again is the remedy.
func stale(err error) bool { return errors.Is(err, apply.ErrStale) || errors.Is(err, apply.ErrGone) }
