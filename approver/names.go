package approver

import (
	"github.com/solonode/sno/patch"
)

const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "approver"
	// ConditionPrefix begins the types of the sub-conditions.
	ConditionPrefix = "ApproverTopology"

	// Namespace is where the stock approver runs (U-APP-1).
	Namespace = "openshift-cluster-machine-approver"
	// DeploymentName is the name of its Deployment.
	DeploymentName = "machine-approver"
	// ConfigMapName is the name of its configuration, under the key ConfigKey. It is optional: usually there is none.
	ConfigMapName = "machine-approver-config"
	// ConfigKey is the name of the file.
	ConfigKey = "config.yaml"
	// ClusterVersionName is the name of the cluster's only ClusterVersion.
	ClusterVersionName = "version"

	// ClusterVersionOperator is the field manager of whatever comes from a static manifest of the release.
	ClusterVersionOperator = "cluster-version-operator"
	// Released is the field manager of what this module gave back where it is not known whose it was before.
	Released = patch.Domain + "/" + Name + "-released"

	// EditAnnotation stands on the ConfigMap while this module has its line in the configuration, and on the Deployment's pod
	// template, where another value of it restarts the stock approver.
	EditAnnotation = patch.Domain + "/" + Name + "-edit"

	// ApprovalReason is the reason of the condition by which a request is approved. The stock approver's is NodeCSRApprove (U-APP-6).
	ApprovalReason = "SnoNodeCSRApprove"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Fields that this module writes, as the API server names them.
const (
	FieldReplicas  = ".spec.replicas"
	FieldOverrides = ".spec.overrides"
)

// Reasons of the patch, least severe first. The shared ones are in package patch; those of a verdict are in verdict.go.
const (
	ReasonAsExpected               = patch.ReasonAsExpected               // the stock approver approves no client certificate by itself
	ReasonNotNeeded                = patch.ReasonNotNeeded                // several control-plane nodes, Machines, or no stock approver
	ReasonOptedOut                 = patch.ReasonOptedOut                 // a person keeps sno away
	ReasonTakingOver               = "TakingOver"                         // the cluster-version-operator has to let go first
	ReasonRestarting               = "Restarting"                         // written, the stock approver is on its way to read it
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure // the topology is not known yet
	ReasonWaitingForMachines       = "WaitingForMachines"                 // whether there are Machines is not known yet
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther        // a person says disabled: false, or owns the replicas or the override
	ReasonReverted                 = patch.ReasonReverted                 // somebody took the line out of the configuration
	ReasonInvalid                  = patch.ReasonInvalid                  // a configuration or input that cannot be understood
	ReasonRequestsPending          = "RequestsPending"                    // requests have waited longer than the limit
	ReasonCertificatesExpiring     = "CertificatesExpiring"               // certificates of nodes are close to their end
)
