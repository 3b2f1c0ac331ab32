// SPDX-License-Identifier: Apache-2.0

package decision

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/etcdguard"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/patch/overrides"
)

const (
	// ConditionPrefix is the prefix of the types of the conditions on the Etcd.
	ConditionPrefix = "EtcdGuardTopology"
	// OverridesSubject is the subject of messages on overrides.
	OverridesSubject = "the guard"
)

// FieldOwner is the server-side apply field owner of this module.
var FieldOwner = patch.FieldOwner(etcdguard.Name)

// Overrides returns the entries of the ClusterVersion's spec.overrides that make the guard unmanaged.
func Overrides() []configv1.ComponentOverride {
	return []configv1.ComponentOverride{
		overrides.Deployment(etcdguard.Namespace, etcdguard.GuardName),
		{Kind: "PodDisruptionBudget", Group: "policy", Namespace: etcdguard.Namespace, Name: etcdguard.GuardName, Unmanaged: true},
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
