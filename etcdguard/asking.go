package etcdguard

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/solonode/sno/patch"
)

// NodeRoles are the roles, as labels, of the nodes that can make a difference to Decide. Where there is to be no guard, none do.
func (in Inputs) NodeRoles() []string {
	switch {
	case in.Cluster == nil || !guarded(in.mode()):
		return nil
	case in.mode() == configv1.HighlyAvailableArbiterMode:
		return []string{MasterRole, ArbiterRole}
	}
	return []string{MasterRole}
}

// NeedsMembers tells whether the members of etcd can make a difference to Decide. Where it is false, nobody need ask etcd.
func (in Inputs) NeedsMembers() bool {
	switch {
	case in.Cluster == nil || in.mode() == configv1.ExternalTopologyMode:
		return false
	case !guarded(in.mode()):
		return in.Deployment != nil || in.Budget != nil
	}
	return !in.operatorGuards()
}

// AsksAgain tells whether etcd is to be asked again after a while, although nothing else changes: the members are not known, or the
// result waits for them, or there are more of them than nodes, so that the guard is to shrink when they leave. No watch tells of that.
func (in Inputs) AsksAgain(result patch.Result) bool {
	if !in.NeedsMembers() || result.State == patch.OptedOut {
		return false
	}
	voters, _ := votes(in.Members)
	switch {
	case result.Reason == ReasonWaitingForMembers || result.Reason == ReasonMembersUnhealthy:
		return true
	case guarded(in.mode()):
		return in.Members == nil || voters > len(memberNodes(in.mode(), in.Nodes))
	}
	return false
}
