// SPDX-License-Identifier: Apache-2.0

package console

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// Names of the module and of objects. A budget has the name of its Deployment.
const (
	Name            = "console" // in the field owner, annotations, metrics and flags
	ConditionPrefix = "ConsoleTopology"
	Namespace       = "openshift-console"
	ConsoleName     = "console"
	DownloadsName   = "downloads"
	OperatorName    = "cluster" // the only Console of operator.openshift.io
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

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
func Override() configv1.ComponentOverride { return overrides.Deployment(Namespace, DownloadsName) }

// OverrideOwnedByOther is the result where other managers own the entry for downloads.
func OverrideOwnedByOther(managers ...string) *patch.Result {
	return overrides.OwnedByOther("the "+subjectOf(DownloadsName), managers...)
}

func subjectOf(name string) string { return name + " Deployment" }

func podLabels(name string) map[string]string {
	component := "ui"
	if name == DownloadsName {
		component = "downloads"
	}
	return map[string]string{"app": "console", "component": component}
}
