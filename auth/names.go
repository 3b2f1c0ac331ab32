package auth

import (
	"github.com/solonode/sno/patch"
)

const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "auth"
	// ConditionPrefix begins the types of the sub-conditions on the Authentication of the operator.
	ConditionPrefix = "AuthTopology"

	// ConfigName is the name of the cluster's only Infrastructure and of authentications.operator.openshift.io.
	ConfigName = "cluster"
	// ClusterVersionName is the name of the cluster's only ClusterVersion.
	ClusterVersionName = "version"
	// ControlPlaneNodeLabel is the label of the nodes with the master role, by which both Deployments select theirs.
	ControlPlaneNodeLabel = "node-role.kubernetes.io/master"
	// OAuthServerNamespace is where the Deployment runs that logs people in.
	OAuthServerNamespace = "openshift-authentication"
	// OAuthServerName is its name.
	OAuthServerName = "oauth-openshift"
	// OAuthServerBudgetName is the name of the PodDisruptionBudget of its pods.
	OAuthServerBudgetName = "oauth-openshift-pdb"
	// OAuthAPIServerNamespace is where the Deployment runs that serves the OAuth API.
	OAuthAPIServerNamespace = "openshift-oauth-apiserver"
	// OAuthAPIServerName is its name, which it shares with other API servers of OpenShift: only the namespace tells them apart.
	OAuthAPIServerName = "apiserver"
	// OAuthAPIServerBudgetName is the name of the PodDisruptionBudget of its pods, which is not derived from that of the Deployment.
	OAuthAPIServerBudgetName = "oauth-apiserver-pdb"

	// OverrideKey is the deprecated switch inside unsupportedConfigOverrides (R-AUTH-1, U-AUTH-5).
	OverrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableOAuthServer"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Field paths of the patches: the first two on the Authentication, the others on the Deployments.
const (
	FieldOverrides             = ".spec.unsupportedConfigOverrides"
	FieldOverride              = FieldOverrides + "." + OverrideKey
	FieldReplicas              = ".spec.replicas"
	FieldStrategy              = ".spec.strategy"
	FieldNodeSelector          = ".spec.template.spec.nodeSelector"
	FieldTolerations           = ".spec.template.spec.tolerations"
	FieldRequiredAntiAffinity  = ".spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	FieldPreferredAntiAffinity = ".spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
)

// Reasons of this module, least severe first. The shared ones are in package patch.
const (
	ReasonAsExpected               = patch.ReasonAsExpected               // in force and running
	ReasonNotNeeded                = patch.ReasonNotNeeded                // this topology or release needs no override
	ReasonExternalControlPlane     = "ExternalControlPlane"               // the OAuth servers run in another cluster
	ReasonOverrideSetByOther       = "OverrideSetByOther"                 // a person set the override already
	ReasonOptedOut                 = patch.ReasonOptedOut                 // a person keeps sno away
	ReasonDryRun                   = patch.ReasonDryRun                   // would be written
	ReasonRollingOut               = patch.ReasonRollingOut               // shaped, the pods are on their way
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure // the topology is not known yet
	ReasonWaitingForNodes          = "WaitingForNodes"                    // the number of control-plane nodes is not known yet
	ReasonWaitingForObject         = patch.ReasonWaitingForObject         // the object is not there (yet), or is being deleted
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther        // a field belongs to somebody else
	ReasonReverted                 = patch.ReasonReverted                 // somebody takes the patch off again
	ReasonForbidden                = patch.ReasonForbidden                // RBAC
	ReasonRolloutStuck             = "RolloutStuck"                       // the progress deadline has passed
	ReasonInvalid                  = patch.ReasonInvalid                  // input that cannot be understood
	ReasonApplyFailed              = patch.ReasonApplyFailed              // any other answer of the API server
)
