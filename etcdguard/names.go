package etcdguard

import (
	"slices"

	"github.com/solonode/sno/patch"
)

const (
	// Name is the module's name, in its field owner, annotations, metrics and flags.
	Name = "etcdguard"
	// ConditionPrefix begins the types of the sub-conditions.
	ConditionPrefix = "EtcdGuardTopology"

	// Namespace is where etcd, its guards and their budget live.
	Namespace = "openshift-etcd"
	// GuardName is the name of the guard's Deployment and of its PodDisruptionBudget, in the static manifests as well as in
	// the operators that took them over (U-ETC-5).
	GuardName = "etcd-quorum-guard"
	// ClientSecret is the Secret with whose certificate a guard asks its etcd for its health.
	ClientSecret = "etcd-client"
	// CABundle is the ConfigMap by which it knows that it is its etcd.
	CABundle = "etcd-ca-bundle"
	// PodPrefix begins the names of the guards that today's operators make, one pod per node (U-ETC-7).
	PodPrefix = "etcd-guard-"
	// PodsBudgetName is the name of the budget over them.
	PodsBudgetName = "etcd-guard-pdb"
	// OperatorName is the name of the etcd operator's own resource, the only Etcd of operator.openshift.io.
	OperatorName = "cluster"
	// ClusterVersionName is the name of the cluster's only ClusterVersion.
	ClusterVersionName = "version"

	// ClusterVersionOperator is the field manager of whatever comes from a static manifest of the release.
	ClusterVersionOperator = "cluster-version-operator"

	// OverrideKey is the deprecated switch inside unsupportedConfigOverrides (U-ETC-2).
	OverrideKey = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Fields by which it is told whose a guard is, and those that an apply cannot remove by itself.
const (
	FieldReplicas       = ".spec.replicas"
	FieldNodeSelector   = ".spec.template.spec.nodeSelector"
	FieldMaxUnavailable = ".spec.maxUnavailable"
	FieldMinAvailable   = ".spec.minAvailable"
	// FieldOverrides holds the entries that keep the cluster-version-operator away from the guard.
	FieldOverrides = ".spec.overrides"
)

// What the static manifests of releases before 4.8 have (U-ETC-5). It is right for three members, which is
// why nothing is taken over there.
const (
	staticReplicas       = 3
	staticMaxUnavailable = 1
)

// Reasons of this module, least severe first. The shared ones are in package patch.
const (
	ReasonAsExpected               = patch.ReasonAsExpected               // a guard stands over every member, or none on one node
	ReasonNotNeeded                = patch.ReasonNotNeeded                // somebody else's guard is right, or etcd is elsewhere
	ReasonOptedOut                 = patch.ReasonOptedOut                 // a person keeps sno away
	ReasonTakingOver               = "TakingOver"                         // the cluster-version-operator has to let go first
	ReasonGivingBack               = "GivingBack"                         // the same, on the way out
	ReasonRemoving                 = "Removing"                           // a guard that only blocks drains is on its way out
	ReasonRollingOut               = patch.ReasonRollingOut               // written, the guards are on their way
	ReasonMembersUnhealthy         = "MembersUnhealthy"                   // fewer are healthy than the topology expects: nothing is loosened
	ReasonWaitingForInfrastructure = patch.ReasonWaitingForInfrastructure // the topology is not known yet
	ReasonWaitingForNodes          = "WaitingForNodes"                    // the control-plane nodes are not known yet
	ReasonWaitingForMembers        = "WaitingForMembers"                  // the members of etcd are not known, or too many to remove the guard
	ReasonWaitingForObject         = patch.ReasonWaitingForObject         // no guard and no image to make one with, no ClusterVersion, or a guard that its owner mends
	ReasonCertificateMissing       = "CertificateMissing"                 // a guard could not ask etcd for its health
	ReasonFieldOwnedByOther        = patch.ReasonFieldOwnedByOther        // a field of the guard, or an override, is somebody else's
	ReasonRolloutStuck             = "RolloutStuck"                       // the progress deadline has passed
	ReasonInvalid                  = patch.ReasonInvalid                  // input that cannot be understood
)

// StockManagers are the field managers under which etcd operators write the guard Deployment, since the release that took it out of
// the static manifests. Two names, because a field manager defaults to the name of the program, which differs between builds.
func StockManagers() []string { return []string{"cluster-etcd-operator", "etcd-operator"} }

func isStock(manager string) bool { return slices.Contains(StockManagers(), manager) }

// guardLabels are those of the Deployment's pods, podLabels those of the pods that today's operators make.
func guardLabels() map[string]string { return map[string]string{"k8s-app": GuardName} }
func podLabels() map[string]string   { return map[string]string{"app": "guard"} }
