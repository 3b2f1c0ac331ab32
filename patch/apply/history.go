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
	// DefaultRevertBackoff is how long a reverted patch is withheld. It doubles with every further revert.
	DefaultRevertBackoff = 5 * time.Minute
	maxRevertPause       = time.Hour
)

// history is what the applier knows of one object, to distinguish a revert from a first application. nil is an unknown object.
type history struct {
	// intent is the fingerprint of the patch that was in force; empty after a release.
	intent string
	// resourceVersion, managed and owned are of the object when it last had the patch, or of the release.
	resourceVersion string
	managed         []metav1.ManagedFieldsEntry
	owned           *fieldpath.Set
	// reverts is their number; until is when the patch may be tried again after the last one.
	reverts int
	until   time.Time
}

func (h *history) applied(intended string) bool { return h != nil && h.intent == intended }

// isNewer reports whether the object was read before what the history knows.
func (h *history) isNewer(live *unstructured.Unstructured) bool {
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), h.resourceVersion)
	return err == nil && order < 0
}

// cacheIsStale reports whether the object was read before it was released. A copy that still has the patch must not count as applied
// again, or the release would look like a revert once it is read.
func (h *history) cacheIsStale(live *unstructured.Unstructured) bool {
	return h.applied("") && h.isNewer(live)
}

// stillApplied reports whether the intent is in force although the object has other values: the API server may have normalized one
// ("1000m" becomes "1"), while a change by another client takes the field from us; or the cache is stale.
func (h *history) stillApplied(live *unstructured.Unstructured, intended string, own *fieldpath.Set, absent absence) bool {
	return h.applied(intended) && (own.Equals(h.owned) && len(absent.values)+len(absent.maps) == 0 || h.isNewer(live))
}

// pause returns for how much longer a reverted patch is withheld (R-SNO-9). It begins with the first call after the revert; when it is
// over the patch is tried until the API server accepts it once.
func (a *Applier) pause(h *history) time.Duration {
	now := time.Now()
	if a.Clock != nil {
		now = a.Clock.Now()
	}
	if h.until.IsZero() {
		pause := DefaultRevertBackoff
		for i := 0; i < h.reverts && pause < maxRevertPause; i++ {
			pause *= 2
		}
		h.reverts++
		h.until = now.Add(min(pause, maxRevertPause))
	}
	return max(h.until.Sub(now), 0)
}

// recordApplied records that the intent is in force, also when an earlier process applied it.
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

// reverters returns the other managers that wrote the object since the patch was in force. A client that only removes fields leaves
// no entry in managedFields.
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

// fingerprint identifies an intent: equal intents have equal texts.
func fingerprint(body map[string]any) (string, error) {
	text, err := json.Marshal(ownership.Payload(body))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrIntent, err)
	}
	return string(text), nil
}
