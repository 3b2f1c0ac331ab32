// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"github.com/solonode/sno/ingress"
	"github.com/solonode/sno/patch"
)

// ConditionPrefix is the prefix of the types of the conditions on the IngressController.
const ConditionPrefix = "IngressTopology"

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(ingress.Name)

// Field paths of the patch.
const (
	FieldReplicas      = ".spec.replicas"
	FieldNodePlacement = ".spec.nodePlacement"
)

// Reasons of this module, least severe first. The shared ones are in package patch.
const (
	ReasonAsExpected               = patch.ReasonAsExpected               // pinned, and the router is rolled out
	ReasonNotNeeded                = patch.ReasonNotNeeded                // the router belongs to the workers
	ReasonExternalControlPlane     = "ExternalControlPlane"               // no control-plane nodes in this cluster
	ReasonOptedOut                 = patch.ReasonOptedOut                 // an annotation opts out of the module
	ReasonDryRun                   = patch.ReasonDryRun                   // would be written
	ReasonRouterRollingOut         = "RouterRollingOut"                   // patched, and the router is rolling out
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure // the topology is not known yet
	ReasonWaitingForObject         = patch.ReasonWaitingForObject         // no default IngressController (yet), or it is being deleted
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther        // another manager owns the placement or replicas
	ReasonReverted                 = patch.ReasonReverted                 // another client reverts the patch
	ReasonForbidden                = patch.ReasonForbidden                // RBAC
	ReasonRolloutStuck             = patch.ReasonRolloutStuck             // the router's progress deadline has passed
	ReasonInvalid                  = patch.ReasonInvalid                  // invalid input
	ReasonApplyFailed              = patch.ReasonApplyFailed              // any other error of the API server
)

// ReleasedManager is the field manager of a number of routers that the module sets when it releases the
// IngressController.
var ReleasedManager = patch.ReleasedManager(ingress.Name)

// ReplicasManagers returns the field managers whose spec.replicas may be replaced, because no person chose it: those of
// the stock operator, which writes it only at creation (U-ING-2, U-ING-11), by build, and ReleasedManager.
func ReplicasManagers() []string {
	return []string{"cluster-ingress-operator", "ingress-operator", ReleasedManager}
}
