// SPDX-License-Identifier: Apache-2.0

package decision

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/console"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// ConditionPrefix is the prefix of the types of the conditions on the Console.
const ConditionPrefix = "ConsoleTopology"

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(console.Name)

// Reasons of this module, least severe first. Other reasons are in package patch.
const (
	ReasonTakingOver   = "TakingOver"           // waiting for the cluster-version-operator to observe the override
	ReasonGivingBack   = "GivingBack"           // the patch is being released
	ReasonRollingOut   = patch.ReasonRollingOut // shaped, the rollout has not finished
	ReasonDrainBlocked = "DrainBlocked"         // a budget does not allow evicting the only pod
	ReasonRolloutStuck = "RolloutStuck"         // the progress deadline has passed
)

// stockManagers are the field managers of console operators: by default the name of the program, "console" in the
// image.
var stockManagers = []string{"console", "console-operator"}

// Override is the entry of ClusterVersion's spec.overrides that makes downloads unmanaged.
func Override() configv1.ComponentOverride {
	return overrides.Deployment(console.Namespace, console.DownloadsName)
}

// OverrideOwnedByOther is the result where other managers own the entry for downloads.
func OverrideOwnedByOther(managers ...string) *patch.Result {
	return overrides.OwnedByOther("the "+subjectOf(console.DownloadsName), managers...)
}

func subjectOf(name string) string { return name + " Deployment" }
