package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solonode/sno/patch"
)

// Messages are the parts of a module's messages about one object, without names that vary.
type Messages struct {
	// Subject begins a sentence: "The default IngressController". Creator creates the object: "the ingress operator".
	Subject, Creator string
	// Resource is what RBAC has to permit: "ingresscontrollers.operator.openshift.io in namespace openshift-ingress-operator".
	Resource string
	// WouldApply is what a dry run would do: "the router would be pinned to the control plane".
	WouldApply string
	// ProgressingReason is the reason of a patch in progress; empty means patch.ReasonRollingOut.
	ProgressingReason string
	// OwnedByOther returns the result for a conflict; nil for patch.OwnedByOther of the field.
	OwnedByOther func(manager ...string) *patch.Result
}

const (
	forbiddenRetry = time.Minute // no watched object changes when a permission is granted
	staleRetry     = time.Second
)

// ApplyStep carries out a step on the live object, which may be nil. It returns the result to report, nil for none, and whether the object
// was written.
func (a *Applier) ApplyStep(ctx context.Context, live *unstructured.Unstructured, step patch.Step, words Messages) (result *patch.Result, wrote bool) {
	var outcome Outcome
	var err error
	switch {
	case live == nil:
	case step.Intent != nil:
		outcome, err = a.Apply(ctx, live, step.Intent, step.Unset...)
		result = words.Result(ctx, a.Module, outcome, err)
	case step.Release:
		outcome, err = a.Release(ctx, live, ReleaseOptions{})
		result = words.Released(a.Module, *step.Result, outcome, err)
	}
	if result == nil {
		result = step.Result
	}
	return result, outcome.Kind == Applied || outcome.Kind == Released
}

// Result returns the result of an Apply of the module, nil when the intent is in force, and logs the fields that it changed.
func (w Messages) Result(ctx context.Context, module string, outcome Outcome, err error) *patch.Result {
	if err != nil {
		return w.Failed(module, err)
	}
	switch outcome.Kind {
	case Applied, WouldApply:
		log := logr.FromContextOrDiscard(ctx)
		for _, change := range outcome.Changes {
			if change.Differs {
				log.Info("Field changed", "dryRun", outcome.Kind == WouldApply, "field", change.Field, "live", change.Live,
					"desired", change.Desired, "owner", change.Owner)
			}
		}
		if outcome.Kind == WouldApply {
			return &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: " + w.WouldApply}
		}
	case Conflicted:
		conflict := outcome.Conflicts[0]
		if w.OwnedByOther != nil {
			return w.OwnedByOther(conflict.Manager)
		}
		result := patch.OwnedByOther(conflict.Field, conflict.Manager)
		return &result
	case Withheld:
		by := cmp.Or(patch.Quoted(outcome.RevertedBy), "another client")
		return &patch.Result{State: patch.Reverted, Reason: patch.ReasonReverted, After: outcome.RetryAfter, Message: fmt.Sprintf(
			"The patch was reverted by %s; it is tried again later. To stop that, set the annotation %s", by, patch.OptOutAnnotation)}
	case Unchanged, Released, WouldRelease, Failed:
	}
	return nil
}

// Released returns the result of a Release of the module, nil when the reason for the release is the result.
func (w Messages) Released(module string, because patch.Result, outcome Outcome, err error) *patch.Result {
	switch {
	case err != nil:
		return w.Failed(module, err)
	case outcome.Kind == WouldRelease:
		return &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: the patch would be released. " + because.Message}
	}
	return nil
}

// Failed returns the result for an error of Apply or Release. What only needs another read is no failure.
func (w Messages) Failed(module string, err error) *patch.Result {
	lower := strings.ToLower(w.Subject[:1]) + w.Subject[1:]
	switch {
	case errors.Is(err, ErrGone):
		return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject,
			Message: w.Subject + " was deleted while it was patched; " + w.Creator + " makes a new one"}
	case errors.Is(err, ErrStale):
		return &patch.Result{State: patch.Progressing, Reason: cmp.Or(w.ProgressingReason, patch.ReasonRollingOut), After: staleRetry,
			Message: w.Subject + " is being patched"}
	case errors.Is(err, patch.ErrReplacedAnnotation):
		return &patch.Result{State: patch.Failed, Reason: patch.ReasonInvalid,
			Message: "The annotation " + patch.ReplacedAnnotation(module) + " on " + lower + " cannot be read; repair it or remove it"}
	case apierrors.IsForbidden(err):
		return &patch.Result{State: patch.Failed, Reason: patch.ReasonForbidden, After: forbiddenRetry,
			Message: "Not permitted to patch " + w.Resource + "; apply the controller's RBAC"}
	}
	return &patch.Result{State: patch.Failed, Reason: patch.ReasonApplyFailed, Err: err,
		Message: "The API server did not accept the patch of " + lower + "; the controller's log has its answer"}
}
