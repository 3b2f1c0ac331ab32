// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// Decision has the next step for each patched object. They are independent: steps that depend on each other are never
// in one Decision. Read the objects and decide again after a step.
type Decision struct {
	ClusterVersion     patch.Step // applies only the entry for downloads
	Downloads, Console patch.Step
}

// Decide returns the next step for both Deployments, and for the override that makes downloads unmanaged (R-CON-2). A
// takeover sets the override, waits until the cluster-version-operator has observed it, and applies the shape. A
// release releases the shape first and the override last.
func Decide(in Inputs) Decision {
	downloads := in.downloads()
	override, shape := decideOverride(downloads, decideShape(downloads))
	return Decision{
		ClusterVersion: override,
		Downloads:      reportStuck(downloads, shape),
		Console:        reportStuck(in.console(), decideShape(in.console())),
	}
}

// decideShape decides on a Deployment, without the override.
func decideShape(o target) patch.Step {
	if result, policy := checks().Run(o); result != nil {
		return patch.Step{Result: result, Release: policy == patch.ReleaseFields}
	}
	return reportDrain(o, o.Step())
}

// decideOverride orders the steps of the override and of the shape of downloads.
func decideOverride(o target, shape patch.Step) (override, downloads patch.Step) {
	if o.in.ClusterVersion == nil || shape.Intent == nil && shape.Result.State == patch.Failed {
		return patch.Step{}, shape
	}
	claim, err := o.claim()
	switch {
	case err != nil:
		return patch.Step{}, patch.Step{Result: patch.Invalid(err)}
	case o.missing():
		// The override prevents the cluster-version-operator from creating it again.
		if shape.Result.State == patch.Waiting && claim.Complete && !claim.Releasable {
			shape.Result = &patch.Result{State: patch.Waiting, Reason: patch.ReasonWaitingForObject, Message: "There is no Deployment, and an entry " +
				"of another client in " + overrides.Field + " keeps the cluster-version-operator from creating one; remove that entry"}
		}
		return releaseIf(claim.Releasable, shape.Result), shape
	case shape.Release:
		return release(o, claim, shape)
	case shape.Intent != nil && o.needsOverride():
		return takeOver(o, claim, shape)
	}
	return patch.Step{}, shape
}

func takeOver(o target, claim overrides.Claim, shape patch.Step) (override, downloads patch.Step) {
	shaped, err := o.Shaped()
	if err != nil {
		return patch.Step{}, patch.Step{Result: patch.Invalid(err)}
	}
	if !claim.Complete || claim.Releasable {
		override.Intent = claim.Intent()
	}
	switch {
	case !claim.Complete:
		override.Result = progressing(ReasonTakingOver, "Adding an override for downloads; it blocks upgrades until it is removed")
		return override, patch.Step{}
	case !claim.Observed && (!shaped || !o.owned()):
		override.Result = progressing(ReasonTakingOver, waitingForOperator)
		return override, patch.Step{}
	}
	return override, shape
}

func release(o target, claim overrides.Claim, shape patch.Step) (override, downloads patch.Step) {
	keep, err := keepsOverride(o, shape.Result)
	switch {
	case err != nil:
		return patch.Step{}, patch.Step{Result: patch.Invalid(err)}
	case keep:
		return patch.Step{}, shape
	case claim.Releasable && !claim.Observed && o.owned():
		// The cluster-version-operator may still be writing.
		return patch.Step{}, patch.Step{Result: progressing(ReasonGivingBack, waitingForOperator)}
	}
	return releaseIf(claim.Releasable && !o.owned(), shape.Result), shape
}

const waitingForOperator = "Waiting for the cluster-version-operator to observe the override for downloads; if this persists, check that it runs"

func releaseIf(owned bool, because *patch.Result) patch.Step {
	if !owned {
		return patch.Step{}
	}
	return patch.Step{Release: true, Result: because}
}

func progressing(reason, message string) *patch.Result {
	return &patch.Result{State: patch.Progressing, Reason: reason, Message: message}
}

// keepsOverride reports whether the override stays when the shape is released: without it the cluster-version-operator
// would revert a person's value.
func keepsOverride(o target, result *patch.Result) (bool, error) {
	if result.State != patch.Blocked {
		return false, nil
	}
	stock, err := stockOwners(o.Live)
	return len(stock) == 0, err
}
