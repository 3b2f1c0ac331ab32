package apply

import (
	"encoding/json"
	"hash/fnv"
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

// history is what the applier remembers of one object to tell a revert from a first application.
type history struct {
	intent          uint64
	resourceVersion string
	// managed and owned are the object's managedFields at that version, and the part of them that is ours.
	managed []metav1.ManagedFieldsEntry
	owned   *fieldpath.Set
	reverts int
	until   time.Time
}

// remembered is what is known of the intent on this object; nil when it was never seen there.
func (a *Applier) remembered(live *unstructured.Unstructured, intended uint64) *history {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.history[live.GetUID()]; h != nil && h.intent == intended {
		return h
	}
	return nil
}

// reverted reports whether this very intent was on the object already and somebody took it off (R-SNO-9). The first
// time, the patch is held back for a pause; when the pause is over it is tried until the API server accepts it once.
func (a *Applier) reverted(live *unstructured.Unstructured, intended uint64) (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.history[live.GetUID()]
	if h == nil || h.intent != intended {
		return 0, false
	}
	now := a.now()
	if h.until.IsZero() {
		pause := a.RevertPause
		if pause == 0 {
			pause = DefaultRevertPause
		}
		for range h.reverts {
			pause = min(2*pause, MaxRevertPause)
		}
		h.reverts = min(h.reverts+1, maxDoublings)
		h.until = now.Add(min(pause, MaxRevertPause))
	}
	left := h.until.Sub(now)
	return max(left, 0), left > 0
}

// stands tells whether the intent is on the object although it does not look so.
//
// The API server may have written a value in another form ("1000m" becomes "1"): as long as our fields are the ones that we
// got when it was applied, nobody changed them, because a change takes the field from us. And a cache may not have caught up
// with our own write: its next event will say how the object really is. Without this, one's own write would look like a revert.
func (a *Applier) stands(live *unstructured.Unstructured, intended uint64, own *fieldpath.Set, off absence) bool {
	h := a.remembered(live, intended)
	if h == nil {
		return false
	}
	if own.Equals(h.owned) && len(off.named)+len(off.emptied) == 0 {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), h.resourceVersion)
	return err == nil && order < 0
}

func (a *Applier) applied(live, answer *unstructured.Unstructured, intended uint64) error {
	owned, err := ownership.Applied(answer, patch.FieldOwner(a.Module), "")
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.history == nil {
		a.history = map[types.UID]*history{}
	}
	h := &history{intent: intended, resourceVersion: answer.GetResourceVersion(), managed: answer.GetManagedFields(), owned: owned}
	if old := a.history[live.GetUID()]; old != nil && old.intent == intended {
		h.reverts = old.reverts
	}
	a.history[live.GetUID()] = h
	return nil
}

// settled notes that the intent stands, also when an earlier process applied it.
func (a *Applier) settled(live *unstructured.Unstructured, intended uint64, own *fieldpath.Set) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &history{intent: intended, resourceVersion: live.GetResourceVersion(), managed: live.GetManagedFields(), owned: own}
	if old := a.history[live.GetUID()]; old != nil && old.intent == intended {
		if order, err := resourceversion.CompareResourceVersion(h.resourceVersion, old.resourceVersion); err != nil || order <= 0 {
			return
		}
		h.reverts = old.reverts
	}
	if a.history == nil {
		a.history = map[types.UID]*history{}
	}
	a.history[live.GetUID()] = h
}

// behind tells that the object was read before we let go of it: the cache has not caught up, and its next event will say how
// the object really is. Without this, an old copy on which the patch still is would count as applied again, and our own
// release, once it is read, as a revert.
func (a *Applier) behind(live *unstructured.Unstructured) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.released[live.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), at)
	if err == nil && order < 0 {
		return true
	}
	delete(a.released, live.GetUID())
	return false
}

// letGo notes the version of the object that we left behind.
func (a *Applier) letGo(uid types.UID, resourceVersion string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.history, uid)
	if a.released == nil {
		a.released = map[types.UID]string{}
	}
	a.released[uid] = resourceVersion
}

// Forget drops what is remembered of an object that is gone.
func (a *Applier) Forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.history, uid)
	delete(a.released, uid)
}

// reverters names who else wrote the object since the patch was seen on it. Who only removed something leaves no trace in
// the object, so there may be nobody to name.
func (a *Applier) reverters(live *unstructured.Unstructured, intended uint64) []string {
	h := a.remembered(live, intended)
	if h == nil {
		return nil
	}
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

// fingerprint identifies an intent: encoding/json sorts map keys, so equal intents have equal bytes.
func fingerprint(body map[string]any) uint64 {
	payload := ownership.Payload(body)
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(payload); err != nil {
		return 0
	}
	return h.Sum64()
}
