// SPDX-License-Identifier: Apache-2.0

package auth

// Names of the module and of objects.
const (
	Name                     = "auth"                           // of the module, in the field owner, annotations, metrics and flags
	ConfigName               = "cluster"                        // of the Infrastructure and of authentications.operator.openshift.io
	ControlPlaneNodeLabel    = "node-role.kubernetes.io/master" // of the nodes that both Deployments select
	OAuthServerNamespace     = "openshift-authentication"
	OAuthServerName          = "oauth-openshift"
	OAuthServerBudgetName    = "oauth-openshift-pdb"
	OAuthAPIServerNamespace  = "openshift-oauth-apiserver"
	OAuthAPIServerName       = "apiserver" // as in other namespaces
	OAuthAPIServerBudgetName = "oauth-apiserver-pdb"
)

// OverrideKey is the deprecated switch (R-AUTH-1, U-AUTH-5).
const OverrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
