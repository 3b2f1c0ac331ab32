// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"

	"github.com/solonode/sno/auth"
	"github.com/solonode/sno/patch"
	"github.com/solonode/sno/testcluster/standin"
	"github.com/solonode/sno/topology"
)

const (
	// wellKnownConditions and nodeConditions are prefixes of conditions.
	wellKnownConditions = "WellKnown"
	nodeConditions      = "ControlPlaneNodes"
	// overridesUpgradeable is the condition of library-go's operators for an override that blocks upgrades.
	overridesUpgradeable = "UnsupportedConfigOverridesUpgradeable"

	reasonWaitingForNodes = "WaitingForNodes"
	reasonOverride        = "UnsupportedConfigOverrides"
	reasonUnreadable      = "UnreadableOverride"
)

// minimumConditions returns whether the operator waits for nodes, and the state of the override. An unreadable one has
// no effect, but is reported.
func minimumConditions(minimum auth.Minimum, nodes int32) []operatorv1.OperatorCondition {
	waiting := standin.Condition(nodeConditions+operatorv1.OperatorStatusTypeProgressing, false, patch.ReasonAsExpected, "Nothing is waited for")
	degraded := standin.Condition(nodeConditions+operatorv1.OperatorStatusTypeDegraded, false, patch.ReasonAsExpected, "Nothing is failing")
	upgradeable := standin.Condition(overridesUpgradeable, true, patch.ReasonAsExpected, "No deprecated override is set")
	if nodes < minimum.Nodes {
		waiting = standin.Condition(waiting.Type, true, reasonWaitingForNodes,
			fmt.Sprintf("%d of %d control-plane nodes are there; Deployments that do not exist yet are made when all are", nodes, minimum.Nodes))
	}
	if deprecation := minimum.Deprecation; deprecation != "" {
		upgradeable = standin.Condition(upgradeable.Type, false, reasonOverride, deprecation)
	}
	if err := minimum.Unreadable; err != nil {
		degraded = standin.Condition(degraded.Type, true, reasonUnreadable, err.Error())
		upgradeable = standin.Condition(upgradeable.Type, false, reasonUnreadable, err.Error())
	}
	return []operatorv1.OperatorCondition{waiting, degraded, upgradeable}
}

// publishedState derives the state of the last requests to the API servers from the conditions, for a new process.
// Times are those of the conditions' transitions, less their delay. A partial failure that was not degraded yet begins
// with the next requests.
func publishedState(published []operatorv1.OperatorCondition, mode configv1.TopologyMode) auth.WellKnownState {
	find := func(suffix string) (operatorv1.OperatorCondition, bool) {
		i := slices.IndexFunc(published, func(c operatorv1.OperatorCondition) bool { return c.Type == wellKnownConditions+suffix })
		if i < 0 {
			return operatorv1.OperatorCondition{}, false
		}
		return published[i], published[i].Status == operatorv1.ConditionTrue
	}
	available, isAvailable := find(operatorv1.OperatorStatusTypeAvailable)
	progressing, isProgressing := find(operatorv1.OperatorStatusTypeProgressing)
	degraded, isDegraded := find(operatorv1.OperatorStatusTypeDegraded)
	state := auth.WellKnownState{Available: isAvailable}
	earlier := func(times []*time.Time, t time.Time) {
		for _, known := range times {
			if known.IsZero() || t.Before(*known) {
				*known = t
			}
		}
	}
	both := []*time.Time{&state.FailingSince, &state.SilentSince}
	switch {
	case isProgressing:
		earlier(both, progressing.LastTransitionTime.Time)
	case available.Status == operatorv1.ConditionFalse && topology.SingleReplica(mode):
		earlier(both, available.LastTransitionTime.Add(-auth.RolloutGrace))
	case available.Status == operatorv1.ConditionFalse:
		earlier(both, available.LastTransitionTime.Time)
	}
	if isDegraded && isAvailable {
		earlier(both[:1], degraded.LastTransitionTime.Add(-auth.DegradedAfter))
	} else if isDegraded && topology.SingleReplica(mode) { // elsewhere a failure of all is degraded at once
		earlier(both, degraded.LastTransitionTime.Add(-auth.DegradedAfter))
	}
	return state
}
