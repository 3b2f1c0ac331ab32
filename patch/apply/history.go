// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/ownership"
)

const (
	// DefaultRevertBackoff is how long a reverted patch is withheld. It doubles with each further revert.
	DefaultRevertBackoff = 5 * time.Minute
	maxRevertBackoff     = time.Hour
)

// history holds what an applier knows of one object; nil if the object is unknown.
type history struct {
	intent string // fingerprint of the patch that was in force; empty after a release
	// The object when it last had the patch, or at the release.
	resourceVersion string
	managed         []metav1.ManagedFieldsEntry
	owned           *fieldpath.Set
	// unanswered means that a request of this applier that ends the patch has no answer: the object may have changed.
	unanswered bool
	reverts    int // their number
	// The back-off after the last revert; revertedAt is zero if the patch was in force since.
	revertedAt time.Time
	wait       time.Duration
}

func (h *history) applied(intended string) bool { return h != nil && h.intent == intended }

// isNewer reports whether the history is newer than the object.
func (h *history) isNewer(live *unstructured.Unstructured) bool {
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), h.resourceVersion)
	return err == nil && order < 0
}

// cacheIsStale reports whether the object was read before its release. It still has the patch, which must not be
// recorded as applied: the release would then count as a revert.
func (h *history) cacheIsStale(live *unstructured.Unstructured) bool {
	return h.applied("") && h.isNewer(live)
}

// mayBeEnded reports whether the object is the one for which a request that ends the patch has no answer. A patch in it
// is not recorded as applied: what that request wrote would then count as a revert.
func (h *history) mayBeEnded(live *unstructured.Unstructured) bool {
	return h != nil && h.unanswered && h.resourceVersion == live.GetResourceVersion()
}

// stillApplied reports whether the intent is in force although the object has other values: the API server may have
// normalized one ("1000m" becomes "1"), which does not change the owner of the field, or the cache is stale.
func (h *history) stillApplied(live *unstructured.Unstructured, intended string, own *fieldpath.Set, absent absence) bool {
	return h.applied(intended) && (own.Equals(h.owned) && len(absent.values)+len(absent.maps) == 0 || h.isNewer(live))
}

// backoff returns for how much longer a reverted patch is withheld (R-SNO-9), counted from the first call after the
// revert. After that the patch is retried until the API server accepts it once.
func (a *Applier) backoff(h *history) time.Duration {
	now := a.time()
	if h.revertedAt.IsZero() {
		wait := DefaultRevertBackoff
		for i := 0; i < h.reverts && wait < maxRevertBackoff; i++ {
			wait *= 2
		}
		h.reverts++
		h.revertedAt, h.wait = now, min(wait, maxRevertBackoff)
	}
	return max(h.wait-now.Sub(h.revertedAt), 0)
}

func (a *Applier) time() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

// recordApplied records that the intent is in force, no matter which process applied it.
func (a *Applier) recordApplied(object *unstructured.Unstructured, intended string, own *fieldpath.Set) {
	h := &history{intent: intended, resourceVersion: object.GetResourceVersion(), managed: object.GetManagedFields(), owned: own}
	if old := a.history[object.GetUID()]; old.applied(intended) {
		if old.isNewer(object) {
			return
		}
		h.reverts = old.reverts
	}
	a.setHistory(object.GetUID(), h)
}

// recordUnanswered records that a request may have ended the patch in force.
func (a *Applier) recordUnanswered(live *unstructured.Unstructured) {
	if !a.DryRun {
		a.setHistory(live.GetUID(), &history{resourceVersion: live.GetResourceVersion(), unanswered: true})
	}
}

func (a *Applier) setHistory(uid types.UID, h *history) {
	if a.history == nil {
		a.history = map[types.UID]*history{}
	}
	a.history[uid] = h
}

// Forget drops the history of an object.
func (a *Applier) Forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.history, uid)
}

// reverters returns the managers of changed entries in managedFields. A client that only removes fields has none.
func (a *Applier) reverters(live *unstructured.Unstructured, h *history) []string {
	var managers []string
	for _, entry := range live.GetManagedFields() {
		known := func(e metav1.ManagedFieldsEntry) bool { return reflect.DeepEqual(e, entry) }
		if entry.Manager != patch.FieldOwner(a.Module) && entry.Subresource == "" && !slices.ContainsFunc(h.managed, known) {
			managers = append(managers, entry.Manager)
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}

// fingerprint returns equal texts for equal intents.
func fingerprint(body map[string]any) (string, error) {
	text, err := json.Marshal(ownership.Payload(body))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrIntent, err)
	}
	return string(text), nil
}
