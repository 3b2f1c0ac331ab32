// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

// plan is what Apply does with an object, decided from the object, the intent and the history. Nothing is sent for it.
type plan struct {
	first request
	// reverted means that another client has reverted the patch, or taken a field, since it was in force: it is withheld
	// for a while before the first request.
	reverted bool
	// stale means that the object was read before its release, which is not to be recorded as a patch in force.
	stale bool

	body     map[string]any
	intended string // fingerprint of the intent
	own      *fieldpath.Set
	replaced []patch.Replaced
	absent   absence
	changes  []ownership.Change
	// conflicts are those that managedFields show; complete means that the API server will report no others.
	conflicts []Conflict
	complete  bool
}

// request is the first request of a plan. Requests to remove empty maps follow each.
type request int

const (
	// nothing is sent: the patch is in force.
	nothing request = iota
	// unforced is an apply; after conflicts that may be overridden a forced one follows.
	unforced
	// forced is an apply that takes known fields and records their values.
	forced
	// removal sends no apply: only empty maps are left to remove.
	removal
)

// plan decides; h is the history of the object, nil if it is unknown.
func (a *Applier) plan(live *unstructured.Unstructured, intent runtime.ApplyConfiguration, unset []string, h *history) (*plan, error) {
	p := &plan{}
	var err error
	if p.body, err = bodyOf(live, intent); err != nil {
		return nil, err
	}
	if p.replaced, err = patch.ReadReplaced(live, a.Module); err != nil {
		return nil, err
	}
	if p.own, err = ownership.Applied(live, patch.FieldOwner(a.Module), ""); err != nil {
		return nil, err
	}
	if p.absent, err = absenceOf(live, p.body, p.own, unset); err != nil {
		return nil, err
	}
	if p.intended, err = fingerprint(withNulls(p.body, p.absent.intended)); err != nil {
		return nil, err
	}
	p.body = withNulls(p.body, p.absent.nulls)
	p.changes = ownership.Changes(live, p.body)
	if err := a.annotate(p.body, p.replaced); err != nil {
		return nil, err
	}

	upToDate := ownership.UpToDate(live.Object, p.body, p.own)
	inForce := upToDate && len(p.absent.maps) == 0
	if p.stale = h.cacheIsStale(live); p.stale || inForce || h.stillApplied(live, p.intended, p.own, p.absent) {
		return p, nil
	}
	p.conflicts, p.complete = a.expectedConflicts(live, p.changes)
	p.reverted = h.applied(p.intended) && !inPlace(p.changes, p.absent)
	switch {
	case upToDate && !a.DryRun:
		p.first = removal
	case len(p.conflicts) > 0 && p.complete && a.mayOverride(p.conflicts):
		p.first = forced
	default:
		p.first = unforced
	}
	return p, nil
}

// inPlace reports whether all values are as intended, so that only owners are missing: a client that reverted the patch
// has written its values since.
func inPlace(changes []ownership.Change, absent absence) bool {
	return len(absent.values)+len(absent.maps) == 0 && !slices.ContainsFunc(changes, func(c ownership.Change) bool { return c.Differs })
}
