// SPDX-License-Identifier: Apache-2.0

package auth

import "github.com/solonode/sno/patch"

// Names of the module and of objects.
const (
	Name                     = "auth"                           // in the field owner, annotations, metrics and flags
	ConditionPrefix          = "AuthTopology"                   // of the conditions on the Authentication
	ConfigName               = "cluster"                        // of the Infrastructure and of authentications.operator.openshift.io
	ControlPlaneNodeLabel    = "node-role.kubernetes.io/master" // of the nodes that both Deployments select
	OAuthServerNamespace     = "openshift-authentication"
	OAuthServerName          = "oauth-openshift"
	OAuthServerBudgetName    = "oauth-openshift-pdb"
	OAuthAPIServerNamespace  = "openshift-oauth-apiserver"
	OAuthAPIServerName       = "apiserver" // as in other namespaces
	OAuthAPIServerBudgetName = "oauth-apiserver-pdb"
)

// The deprecated switch (R-AUTH-1, U-AUTH-5), and its fields of the Authentication.
const (
	OverrideKey    = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
	FieldOverrides = ".spec.unsupportedConfigOverrides"
	FieldOverride  = FieldOverrides + "." + OverrideKey
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Reasons of this module, least severe first. Other reasons are in package patch.
const (
	ReasonExternalControlPlane = "ExternalControlPlane" // the OAuth servers run in another cluster
	ReasonOverrideSetByOther   = "OverrideSetByOther"   // another client has set the override
	ReasonRollingOut           = patch.ReasonRollingOut // shaped, the rollout has not finished
	ReasonWaitingForNodes      = "WaitingForNodes"      // there is no control-plane node yet
	ReasonRolloutStuck         = "RolloutStuck"         // the progress deadline has passed
)
