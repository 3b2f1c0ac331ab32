// SPDX-License-Identifier: Apache-2.0

package etcdguard

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

// Name is the module's name. ConditionPrefix is the prefix of its condition types.
const (
	Name            = "etcdguard"
	ConditionPrefix = "EtcdGuardTopology"
)

// Names of objects.
const (
	Namespace      = "openshift-etcd"    // of etcd and its guards
	GuardName      = "etcd-quorum-guard" // the Deployment and its PodDisruptionBudget (U-ETC-5)
	PodsBudgetName = "etcd-guard-pdb"    // the budget over the guard pods of current operators (U-ETC-7)
	ClientSecret   = "etcd-client"       // the Secret with the client certificate for etcd
	CABundle       = "etcd-ca-bundle"    // the ConfigMap with the CA of etcd
	OperatorName   = "cluster"           // the etcd operator's own resource
)

// OverrideKey is the deprecated key in unsupportedConfigOverrides (U-ETC-2), OverridesSubject the subject of messages
// on overrides.
const (
	OverrideKey      = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"
	OverridesSubject = "the guard"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(Name)

// Overrides returns the entries of the ClusterVersion's spec.overrides that make the guard unmanaged.
func Overrides() []configv1.ComponentOverride {
	return []configv1.ComponentOverride{
		overrides.Deployment(Namespace, GuardName),
		{Kind: "PodDisruptionBudget", Group: "policy", Namespace: Namespace, Name: GuardName, Unmanaged: true},
	}
}

const (
	fieldReplicas       = ".spec.replicas"
	fieldNodeSelector   = ".spec.template.spec.nodeSelector"
	fieldMaxUnavailable = ".spec.maxUnavailable"
	fieldMinAvailable   = ".spec.minAvailable"
)

// Reasons of this module. The shared ones are in package patch.
const (
	ReasonTakingOver         = "TakingOver"             // the guard is claimed from the cluster-version-operator
	ReasonGivingBack         = "GivingBack"             // the guard is released to its operator
	ReasonRemoving           = "Removing"               // a guard that only blocks drains is being removed
	ReasonMembersUnhealthy   = "MembersUnhealthy"       // fewer members are healthy than the topology expects
	ReasonWaitingForNodes    = "WaitingForNodes"        // the control-plane nodes are not known yet
	ReasonWaitingForMembers  = "WaitingForMembers"      // the members of etcd are not known, or too many to remove the guard
	ReasonCertificateMissing = "CertificateMissing"     // guards cannot check the health of etcd
	ReasonRolloutStuck       = patch.ReasonRolloutStuck // the progress deadline of the Deployment has passed
)

// stockManagers are the field managers of etcd operators, which differ between builds.
var stockManagers = []string{"cluster-etcd-operator", "etcd-operator"}

// guardLabels are the labels of the Deployment's pods, podLabels those of current operators' guard pods.
func guardLabels() map[string]string { return map[string]string{"k8s-app": GuardName} }
func podLabels() map[string]string   { return map[string]string{"app": "guard"} }
