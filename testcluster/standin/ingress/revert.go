// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// placementReverter reverts the nodePlacement of an IngressController to the first one that was read. It is a fault,
// with which tests show that the ingress controller stops with Reverted.
type placementReverter struct {
	// every is the minimum time between two reverts; 0 reverts at once.
	every time.Duration

	seen       bool
	placement  *operatorv1.NodePlacement
	lastRevert time.Time
}

// revert returns the IngressController to write, or nil, and the time until the next attempt, 0 for the next change.
func (r *placementReverter) revert(live *operatorv1.IngressController, now time.Time) (write *operatorv1.IngressController, after time.Duration) {
	if !r.seen {
		r.seen, r.placement = true, live.Spec.NodePlacement.DeepCopy()
	}
	if equality.Semantic.DeepEqual(live.Spec.NodePlacement, r.placement) {
		return nil, 0
	}
	if wait := r.lastRevert.Add(r.every).Sub(now); wait > 0 {
		return nil, wait
	}
	r.lastRevert = now
	write = live.DeepCopy()
	write.Spec.NodePlacement = r.placement.DeepCopy()
	return write, 0
}
