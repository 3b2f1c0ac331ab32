// SPDX-License-Identifier: Apache-2.0

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

// Messages are the texts of a module about one object. They contain no names that vary.
type Messages struct {
	Subject, Creator string // "The default IngressController" and "the ingress operator"
	// Resource names what RBAC must permit: "ingresscontrollers.operator.openshift.io in namespace openshift-x".
	Resource string
	// WouldApply is the message of a dry run: "the router would be pinned to the control plane".
	WouldApply        string
	ProgressingReason string // empty for patch.ReasonRollingOut
	// OwnedByOther returns the result for a conflict; nil for patch.OwnedByOther.
	OwnedByOther func(manager ...string) *patch.Result
}

const (
	forbiddenRetry = time.Minute // no watched object changes when a permission is granted
	staleRetry     = time.Second
)

// ApplyStep applies a step to the live object, which may be nil. It returns the result, nil for none.
func (a *Applier) ApplyStep(
	ctx context.Context, live *unstructured.Unstructured, step patch.Step, texts Messages,
) (result *patch.Result, wrote bool) {
	var outcome Outcome
	var err error
	switch {
	case live == nil:
	case step.Intent != nil:
		outcome, err = a.Apply(ctx, live, step.Intent, step.Unset...)
		result = texts.Result(ctx, a.Module, outcome, err)
	case step.Release:
		outcome, err = a.Release(ctx, live, ReleaseOptions{Restore: step.Restore, Leave: step.Leave})
		result = texts.Released(a.Module, *step.Result, outcome, err)
	}
	if result == nil {
		result = step.Result
	}
	return result, outcome.Kind == Applied || outcome.Kind == Released
}

// Result returns the result of an Apply, nil if the intent is in force, and logs the changed fields.
func (m Messages) Result(ctx context.Context, module string, outcome Outcome, err error) *patch.Result {
	if err != nil {
		return m.Failed(module, err)
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
			return &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: " + m.WouldApply}
		}
	case Conflicted:
		conflict := outcome.Conflicts[0]
		if m.OwnedByOther != nil {
			return m.OwnedByOther(conflict.Manager)
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

// Released returns the result of a Release, nil if the reason for the release is the result.
func (m Messages) Released(module string, because patch.Result, outcome Outcome, err error) *patch.Result {
	switch {
	case err != nil:
		return m.Failed(module, err)
	case outcome.Kind == WouldRelease:
		return &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: the patch would be released. " + because.Message}
	}
	return nil
}

// Failed returns the result for an error of Apply or Release. A stale or deleted object is no failure.
func (m Messages) Failed(module string, err error) *patch.Result {
	lower := strings.ToLower(m.Subject[:1]) + m.Subject[1:]
	switch {
	case errors.Is(err, ErrGone):
		return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject,
			Message: m.Subject + " was deleted while it was patched; " + m.Creator + " makes a new one"}
	case errors.Is(err, ErrStale):
		return &patch.Result{State: patch.Progressing, Reason: cmp.Or(m.ProgressingReason, patch.ReasonRollingOut), After: staleRetry,
			Message: m.Subject + " is being patched"}
	case errors.Is(err, patch.ErrReplacedAnnotation):
		return &patch.Result{State: patch.Failed, Reason: patch.ReasonInvalid,
			Message: "The annotation " + patch.ReplacedAnnotation(module) + " on " + lower +
				" was changed by another client or cannot be read, so nothing of it is restored; note the values that you need and remove it"}
	case apierrors.IsForbidden(err):
		return &patch.Result{State: patch.Failed, Reason: patch.ReasonForbidden, After: forbiddenRetry,
			Message: "Not permitted to patch " + m.Resource + "; apply the controller's RBAC"}
	}
	return &patch.Result{State: patch.Failed, Reason: patch.ReasonApplyFailed, Err: err,
		Message: "The API server did not accept the patch of " + lower + "; the controller's log has its answer"}
}
