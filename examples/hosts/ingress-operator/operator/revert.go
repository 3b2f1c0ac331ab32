package operator

import (
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// fight remembers the nodePlacement that an IngressController had when it was first seen, and wants it back. No operator
// should do that; it is here to show that the ingress controller stops with Reverted instead of joining in.
type fight struct {
	// every is the least time between two reverts; 0 reverts at once.
	every time.Duration

	seen       bool
	placement  *operatorv1.NodePlacement
	lastRevert time.Time
}

// revert returns the IngressController as it is to be written, or nil when there is nothing to write now; after is when to
// look again, 0 for at the next change.
func (f *fight) revert(live *operatorv1.IngressController, now time.Time) (write *operatorv1.IngressController, after time.Duration) {
	if !f.seen {
		f.seen, f.placement = true, live.Spec.NodePlacement.DeepCopy()
	}
	if equality.Semantic.DeepEqual(live.Spec.NodePlacement, f.placement) {
		return nil, 0
	}
	if wait := f.lastRevert.Add(f.every).Sub(now); wait > 0 {
		return nil, wait
	}
	f.lastRevert = now
	write = live.DeepCopy()
	write.Spec.NodePlacement = f.placement.DeepCopy()
	return write, 0
}
