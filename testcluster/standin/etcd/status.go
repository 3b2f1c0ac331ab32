// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"

	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	reasonRemoving          = "Removing"
	reasonMembersUnhealthy  = "MembersUnhealthy"
	reasonWaitingForMembers = "WaitingForMembers"
	// guardConditionPrefix is that of the stock operator's controller, so that no old condition remains.
	guardConditionPrefix  = "GuardController"
	memberConditionPrefix = "EtcdMembers"
	// bootstrapped is the stock operator's condition for a cluster with enough members.
	bootstrapped = "EtcdRunningInCluster"
	// overridesUpgradeable is the condition of library-go's operators for an override that blocks upgrades.
	overridesUpgradeable = "UnsupportedConfigOverridesUpgradeable"

	reasonRollingOut = patch.ReasonRollingOut
	reasonError      = "Error"
	reasonOverride   = "UnsupportedConfigOverrides"
	reasonUnreadable = "UnreadableOverride"
	reasonNoQuorum   = "NoQuorum"
)

func waitingForMembers(voters int) *guardState {
	message := fmt.Sprintf("The topology needs no guards; they stay while etcd has %d voting members", voters)
	if voters < 0 {
		message = "The topology needs no guards; they stay while the members of etcd cannot be read"
	}
	return &guardState{reason: reasonWaitingForMembers, message: message}
}

func noGuards() *guardState {
	return &guardState{reason: patch.ReasonAsExpected, message: "The topology needs no guards, and there are none", done: true}
}

func allGuards(n int) *guardState {
	return &guardState{reason: patch.ReasonAsExpected, message: fmt.Sprintf("%d guards are ready", n), done: true}
}

// guardConditions returns whether the guards are being changed, and the error.
func guardConditions(state *guardState, err error) []operatorv1.OperatorCondition {
	degraded := standin.Condition(guardConditionPrefix+operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	if err != nil {
		return []operatorv1.OperatorCondition{standin.Condition(degraded.Type, true, reasonError, err.Error())}
	}
	return []operatorv1.OperatorCondition{standin.Condition(guardConditionPrefix+operatorv1.OperatorStatusTypeProgressing, !state.done, state.reason, state.message), degraded}
}

// memberConditions returns whether etcd has a quorum, enough members, and a problem.
func memberConditions(members []member, gate scaling, problem error) []operatorv1.OperatorCondition {
	all, healthy := voters(members)
	available := standin.Condition(memberConditionPrefix+operatorv1.OperatorStatusTypeAvailable, true, patch.ReasonAsExpected, "Etcd has a quorum")
	progressing := standin.Condition(memberConditionPrefix+operatorv1.OperatorStatusTypeProgressing, false, patch.ReasonAsExpected, "Etcd has as many healthy members as the topology asks for")
	running := standin.Condition(bootstrapped, true, "EnoughEtcdMembers", "Enough members were found")
	degraded := standin.Condition(memberConditionPrefix+operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	switch {
	case gate.minimum == 0 && problem == nil:
		running.Message, progressing.Message, available.Message = "Etcd is not in the cluster", "Etcd is not in the cluster", "Etcd is not in the cluster"
	case members == nil:
		available = standin.Condition(available.Type, false, reasonWaitingForMembers, "The members of etcd cannot be read")
	case healthy < all/2+1:
		available = standin.Condition(available.Type, false, reasonNoQuorum, fmt.Sprintf("%d of %d voting members of etcd are healthy", healthy, all))
	}
	if gate.minimum > healthy || gate.minimum == 0 && problem != nil {
		waiting := fmt.Sprintf("%d healthy voting members of etcd, want %d; the control plane is not complete, and no healthy member is removed", healthy, gate.minimum)
		if gate.minimum == 0 {
			waiting = "The number of members that the topology asks for is not known"
		}
		progressing = standin.Condition(progressing.Type, true, reasonWaitingForMembers, waiting)
		running = standin.Condition(running.Type, false, "NotEnoughEtcdMembers", waiting)
	}
	switch {
	case problem != nil:
		degraded = standin.Condition(degraded.Type, true, reasonError, problem.Error())
	case healthy < all:
		degraded = standin.Condition(degraded.Type, true, reasonMembersUnhealthy, fmt.Sprintf("%d of %d voting members of etcd are not healthy", all-healthy, all))
	}
	return []operatorv1.OperatorCondition{available, progressing, degraded, running}
}

// restartCondition blocks updates of the cluster while the restart of a member would stop etcd.
func restartCondition(reason string) operatorv1.OperatorCondition {
	kind := memberConditionPrefix + operatorv1.OperatorStatusTypeUpgradeable
	if reason != "" {
		return standin.Condition(kind, false, reasonMembersUnhealthy, reason)
	}
	return standin.Condition(kind, true, patch.ReasonAsExpected, "Every member may be restarted")
}

func overrideCondition(deprecation string, unreadable error) operatorv1.OperatorCondition {
	switch {
	case unreadable != nil:
		return standin.Condition(overridesUpgradeable, false, reasonUnreadable, unreadable.Error())
	case deprecation != "":
		return standin.Condition(overridesUpgradeable, false, reasonOverride, deprecation)
	}
	return standin.Condition(overridesUpgradeable, true, patch.ReasonAsExpected, "No deprecated override is set")
}
