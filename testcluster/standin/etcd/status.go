// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"

	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/standin"
)

const (
	reasonError             = "Error"
	reasonMembersUnhealthy  = "MembersUnhealthy"
	reasonWaitingForMembers = "WaitingForMembers"
)

// guardConditions returns whether the guards are being changed, and the error.
func guardConditions(state guardState, err error) []operatorv1.OperatorCondition {
	const progressing, degraded = "GuardControllerProgressing", "GuardControllerDegraded" // as of the stock operator
	if err != nil {
		return []operatorv1.OperatorCondition{standin.Condition(degraded, true, reasonError, err.Error())}
	}
	return []operatorv1.OperatorCondition{
		standin.Condition(progressing, state.reason != patch.ReasonAsExpected, state.reason, state.message),
		standin.Condition(degraded, false, patch.ReasonAsExpected, "Nothing is failing"),
	}
}

// memberConditions returns whether etcd has enough members, whether there is a problem, and whether updates of the
// cluster may restart members.
func memberConditions(members []member, minimum int, restart string, problem error) []operatorv1.OperatorCondition {
	all, healthy := voters(members)
	progressing := standin.Condition("EtcdMembersProgressing", false, patch.ReasonAsExpected, "Etcd has as many healthy members as the topology asks for")
	degraded := standin.Condition("EtcdMembersDegraded", false, patch.ReasonAsExpected, "Nothing is failing")
	upgradeable := standin.Condition("EtcdMembersUpgradeable", true, patch.ReasonAsExpected, "Every member may be restarted")
	if minimum > healthy {
		progressing = standin.Condition(progressing.Type, true, reasonWaitingForMembers, fmt.Sprintf(
			"%d healthy voting members of etcd, want %d; the control plane is not complete, and no healthy member is removed", healthy, minimum))
	}
	switch {
	case problem != nil:
		degraded = standin.Condition(degraded.Type, true, reasonError, problem.Error())
	case healthy < all:
		degraded = standin.Condition(degraded.Type, true, reasonMembersUnhealthy, fmt.Sprintf("%d of %d voting members of etcd are not healthy", all-healthy, all))
	}
	if restart != "" {
		upgradeable = standin.Condition(upgradeable.Type, false, reasonMembersUnhealthy, restart)
	}
	return []operatorv1.OperatorCondition{progressing, degraded, upgradeable}
}
