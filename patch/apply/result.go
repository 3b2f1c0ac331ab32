package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/solonode/sno/patch"
)

// Words are what a module's results say about one object. They land in conditions, so they name no object whose name varies.
type Words struct {
	// Subject begins a sentence: "The default IngressController".
	Subject string
	// MadeBy is who makes the object anew when it is deleted: "the ingress operator".
	MadeBy string
	// Resource is what RBAC has to permit: "ingresscontrollers.operator.openshift.io in namespace openshift-ingress-operator".
	Resource string
	// WouldApply says what a dry run would do: "the router would be pinned to the control plane".
	WouldApply string
	// Progressing is the module's reason for a patch on its way; empty means patch.ReasonRollingOut.
	Progressing string
}

const (
	forbiddenPause = time.Minute
	stalePause     = time.Second
)

// Result is what an Apply of the module has to say; nil when the intent stands on the object, which is then to be observed. Every
// field that was changed goes to the log of the context.
func (w Words) Result(ctx context.Context, module string, outcome Outcome, err error) *patch.Result {
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
		// Somebody took the field between the read and the write; the next read sees it and decides on it.
		result := patch.OwnedByOther(outcome.Conflicts[0].Field, outcome.Conflicts[0].Manager)
		return &result
	case Withheld:
		return &patch.Result{State: patch.Reverted, Reason: patch.ReasonReverted, After: outcome.RetryAfter, Message: fmt.Sprintf(
			"The patch was taken off again by %s; trying again later. To stop that, set the annotation %s",
			orSomebody(outcome.Reverters), patch.OptOutAnnotation)}
	case Unchanged, Released, WouldRelease, Refused:
	}
	return nil
}

// Released is what a Release of the module has to say beside the reason for it; nil when that is all there is to say.
func (w Words) Released(module string, because patch.Result, outcome Outcome, err error) *patch.Result {
	switch {
	case err != nil:
		return w.Failed(module, err)
	case outcome.Kind == WouldRelease:
		return &patch.Result{State: patch.WouldChange, Reason: patch.ReasonDryRun, Message: "Dry run: the patch would be taken off. " + because.Message}
	}
	return nil
}

// Failed turns an error into a result. What only needs a fresh read is retried and not shown as a failure.
func (w Words) Failed(module string, err error) *patch.Result {
	lower := strings.ToLower(w.Subject[:1]) + w.Subject[1:]
	switch {
	case errors.Is(err, ErrGone):
		return &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject,
			Message: w.Subject + " was deleted while it was patched; " + w.MadeBy + " makes a new one"}
	case errors.Is(err, ErrStale):
		// The cache is about to see what changed; the time is for the case that it has just seen it.
		reason := w.Progressing
		if reason == "" {
			reason = patch.ReasonRollingOut
		}
		return &patch.Result{State: patch.Progressing, Reason: reason, After: stalePause, Message: w.Subject + " is being patched"}
	case errors.Is(err, patch.ErrReplacedAnnotation):
		return &patch.Result{State: patch.Failed, Reason: patch.ReasonInvalid,
			Message: "The annotation " + patch.ReplacedAnnotation(module) + " on " + lower + " cannot be read; repair it or remove it"}
	case apierrors.IsForbidden(err):
		// A permission comes back without an event on any watched object, so look again now and then.
		return &patch.Result{State: patch.Failed, Reason: patch.ReasonForbidden, After: forbiddenPause,
			Message: "Not permitted to patch " + w.Resource + "; apply the controller's RBAC"}
	}
	return &patch.Result{State: patch.Failed, Reason: patch.ReasonApplyFailed, Err: err,
		Message: "The API server did not accept the patch of " + lower + "; the controller's log has its answer"}
}

func orSomebody(managers []string) string {
	if len(managers) == 0 {
		return "somebody"
	}
	return `"` + strings.Join(managers, `", "`) + `"`
}
