// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	operatorv1 "github.com/openshift/api/operator/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// placementReverter reverts the nodePlacement of an IngressController to the first one that was read. It is a fault,
// with which tests show that the ingress controller stops with Reverted.
type placementReverter struct {
	seen      bool
	placement *operatorv1.NodePlacement
}

// revert returns the IngressController to write, or nil.
func (r *placementReverter) revert(live *operatorv1.IngressController) *operatorv1.IngressController {
	if !r.seen {
		r.seen, r.placement = true, live.Spec.NodePlacement.DeepCopy()
	}
	if equality.Semantic.DeepEqual(live.Spec.NodePlacement, r.placement) {
		return nil
	}
	write := live.DeepCopy()
	write.Spec.NodePlacement = r.placement.DeepCopy()
	return write
}
