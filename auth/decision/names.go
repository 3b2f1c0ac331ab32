// SPDX-License-Identifier: Apache-2.0

package decision

import "github.com/solonode/sno/auth"

import "github.com/solonode/sno/patch"

// ConditionPrefix is the prefix of the types of the conditions on the Authentication.
const ConditionPrefix = "AuthTopology"

// The fields of the override in the Authentication.
const (
	FieldOverrides = ".spec.unsupportedConfigOverrides"
	FieldOverride  = FieldOverrides + "." + auth.OverrideKey
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(auth.Name)

// Reasons of this module, least severe first. Other reasons are in package patch.
const (
	ReasonExternalControlPlane = "ExternalControlPlane" // the OAuth servers run in another cluster
	ReasonOverrideSetByOther   = "OverrideSetByOther"   // another client has set the override
	ReasonRollingOut           = patch.ReasonRollingOut // shaped, the rollout has not finished
	ReasonWaitingForNodes      = "WaitingForNodes"      // there is no control-plane node yet
	ReasonRolloutStuck         = "RolloutStuck"         // the progress deadline has passed
)
